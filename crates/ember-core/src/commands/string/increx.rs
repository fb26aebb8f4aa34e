//! INCREX: adds an integer or a floating point number within bounds, and changes the expiry.

use ember_protocol::Args;
use ember_protocol::number::parse_i64;

use super::options::Expiry;
use super::set::journal_set;
use super::value;
use crate::algorithms::long_double::LongDouble;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{ExpiryUnit, expiry_unit, is_word, positive_expiry};
use crate::effects::events::Event;
use crate::entries::entry::NewValue;
use crate::error::CommandError;
use crate::keys::Key;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::value::StringValue;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "increx",
        summary: "Adds a number to the value of a key within bounds, and sets or removes its expiry; a missing key \
                  counts as 0.",
        since: "8.8.0",
        group: Group::String,
        arity: -2,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
        syntax: "key increment:[BYFLOAT float | BYINT integer] [SATURATE] [LBOUND lowerbound] [UBOUND upperbound] \
                 expiration:[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | \
                 PERSIST] [ENX]",
        example: Example {
            given: &["SET requests 99"],
            call: "INCREX requests BYINT 5 UBOUND 100 SATURATE EX 60 ENX",
            reply: "1) (integer) 100\n2) (integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(increx),
)];

/// The options of a call: indexes of the arguments with their values.
#[derive(Default)]
struct Options {
    by_float: Option<usize>,
    by_int: Option<usize>,
    lower: Option<usize>,
    upper: Option<usize>,
    saturates: bool,
    expiry: Option<(usize, ExpiryUnit)>,
    persists: bool,
    /// Whether an expiry is set only for a key that has none.
    only_without_expiry: bool,
}

impl Options {
    /// # Errors
    /// Returns `Syntax` for an unknown, repeated or excluded option, and for one without its value.
    fn parse(args: Args<'_>) -> Result<Options, CommandError> {
        let mut options = Options::default();
        let mut arg = 2;
        while arg < args.len() {
            let has_value = arg + 1 < args.len();
            let is_by_number = options.by_float.is_some() || options.by_int.is_some();
            let is_expiry = options.expiry.is_some() || options.persists;
            let unit = expiry_unit(args, arg);
            let (is_allowed, words) = if let Some(unit) = unit {
                options.expiry = options.expiry.or(Some((arg + 1, unit)));
                (!is_expiry && has_value, 2)
            } else if is_word(args, arg, "BYFLOAT") {
                options.by_float = Some(arg + 1);
                (!is_by_number && has_value, 2)
            } else if is_word(args, arg, "BYINT") {
                options.by_int = Some(arg + 1);
                (!is_by_number && has_value, 2)
            } else if is_word(args, arg, "LBOUND") {
                (options.lower.replace(arg + 1).is_none() && has_value, 2)
            } else if is_word(args, arg, "UBOUND") {
                (options.upper.replace(arg + 1).is_none() && has_value, 2)
            } else if is_word(args, arg, "SATURATE") {
                (!std::mem::replace(&mut options.saturates, true), 1)
            } else if is_word(args, arg, "PERSIST") {
                options.persists = true;
                (!is_expiry && !options.only_without_expiry, 1)
            } else if is_word(args, arg, "ENX") {
                let is_repeated = std::mem::replace(&mut options.only_without_expiry, true);
                (!is_repeated && !options.persists, 1)
            } else {
                (false, 1)
            };
            if !is_allowed {
                return Err(CommandError::Syntax);
            }
            arg += words;
        }
        if options.only_without_expiry && options.expiry.is_none() {
            return Err("ERR ENX flag requires an expiration".into());
        }
        Ok(options)
    }
}

/// A number to add, and the bounds of the sum, both included.
struct Addition<N> {
    increment: N,
    lower: N,
    upper: N,
}

impl Addition<i64> {
    fn parse(args: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        let number = |arg: Option<usize>, missing: i64, error: &'static str| match arg {
            None => Ok(missing),
            Some(arg) => parse_i64(args.at(arg)).ok_or(error),
        };
        let addition = Addition {
            increment: number(options.by_int, 1, "ERR Increment is not an integer or out of range")?,
            lower: number(options.lower, i64::MIN, "ERR LBOUND is not an integer or out of range")?,
            upper: number(options.upper, i64::MAX, "ERR UBOUND is not an integer or out of range")?,
        };
        if addition.lower > addition.upper { Err(CROSSED_BOUNDS.into()) } else { Ok(addition) }
    }

    /// Returns the sum and the added number; `None` if the sum is out of bounds, unless `saturates` is set.
    fn apply(&self, old: i64, saturates: bool) -> Result<Option<(i64, i64)>, CommandError> {
        let sum = old.checked_add(self.increment).filter(|sum| (self.lower..=self.upper).contains(sum));
        match sum {
            Some(sum) => Ok(Some((sum, self.increment))),
            None if saturates => {
                let new = old.saturating_add(self.increment).clamp(self.lower, self.upper);
                let added = new.checked_sub(old).ok_or("ERR applied increment would overflow")?;
                Ok(Some((new, added)))
            }
            None => Ok(None),
        }
    }
}

impl Addition<LongDouble> {
    fn parse(args: Args<'_>, options: &Options) -> Result<Self, CommandError> {
        let number = |arg: Option<usize>, missing: LongDouble, error: &'static str| match arg {
            None => Ok(missing),
            Some(arg) => LongDouble::parse(args.at(arg)).ok_or(error),
        };
        let addition = Addition {
            increment: number(options.by_float, LongDouble::ZERO, "ERR Increment is not a valid float")?,
            lower: number(options.lower, LongDouble::MAX.negated(), "ERR LBOUND is not a valid float")?,
            upper: number(options.upper, LongDouble::MAX, "ERR UBOUND is not a valid float")?,
        };
        if addition.increment.is_infinite() {
            return Err("ERR BYFLOAT increment cannot be Infinity".into());
        }
        if addition.lower.compare(addition.upper).is_gt() { Err(CROSSED_BOUNDS.into()) } else { Ok(addition) }
    }

    /// Like the method for integers; a sum beyond the largest number is out of any bounds.
    fn apply(
        &self,
        old: LongDouble,
        saturates: bool,
    ) -> Result<Option<(LongDouble, LongDouble)>, CommandError> {
        let sum = old.saturating_add(self.increment);
        let (is_low, is_high) = (sum.compare(self.lower).is_lt(), sum.compare(self.upper).is_gt());
        if !is_low && !is_high && !sum.is_infinite() {
            return Ok(Some((sum, self.increment)));
        }
        if !saturates {
            return Ok(None);
        }
        let new = if is_low {
            self.lower
        } else if is_high {
            self.upper
        } else {
            sum
        };
        let added = new.checked_add(old.negated()).ok_or("ERR applied increment would be Infinity")?;
        Ok(Some((new, added)))
    }
}

const CROSSED_BOUNDS: &str = "ERR LBOUND can't be greater than UBOUND";

fn increx(call: &mut Call<'_, '_>) -> CommandResult {
    let (args, now_ms) = (call.args, call.keys.turn.clock_ms());
    let options = Options::parse(args)?;
    if options.by_float.is_some() {
        let addition = Addition::<LongDouble>::parse(args, &options)?;
        let expire_at_ms = expire_at_ms(args, &options, now_ms)?;
        add_float(call, &addition, &options, expire_at_ms)
    } else {
        let addition = Addition::<i64>::parse(args, &options)?;
        let expire_at_ms = expire_at_ms(args, &options, now_ms)?;
        add_int(call, &addition, &options, expire_at_ms)
    }
}

fn expire_at_ms(args: Args<'_>, options: &Options, now_ms: i64) -> Result<Option<i64>, CommandError> {
    options.expiry.map(|(arg, unit)| positive_expiry(args, arg, unit, now_ms, "increx")).transpose()
}

fn add_int(
    call: &mut Call<'_, '_>,
    addition: &Addition<i64>,
    options: &Options,
    expire_at_ms: Option<i64>,
) -> CommandResult {
    let mut key = call.keys.key(1);
    let old = match value::string(key.entry())? {
        None => 0,
        Some(StringValue::Int(number)) => number,
        Some(StringValue::Inline(bytes)) => parse_i64(bytes).ok_or(CommandError::NotInteger)?,
        Some(StringValue::Large(_)) => return Err(CommandError::NotInteger),
    };
    let sum = addition.apply(old, options.saturates)?;
    if let Some((new, _)) = sum {
        let mut digits = itoa::Buffer::new();
        let text = digits.format(new).as_bytes();
        store(&mut key, NewValue::Int(new), text, "incrby", options, expire_at_ms);
    }
    let (new, added) = sum.unwrap_or((old, 0));
    call.reply.array(2);
    call.reply.integer(new);
    call.reply.integer(added);
    Ok(())
}

fn add_float(
    call: &mut Call<'_, '_>,
    addition: &Addition<LongDouble>,
    options: &Options,
    expire_at_ms: Option<i64>,
) -> CommandResult {
    let mut key = call.keys.key(1);
    let old = match value::string(key.entry())? {
        None => LongDouble::ZERO,
        Some(StringValue::Int(number)) => LongDouble::from(number),
        Some(StringValue::Inline(bytes)) => LongDouble::parse(bytes).ok_or(CommandError::NotFloat)?,
        Some(StringValue::Large(_)) => return Err(CommandError::NotFloat),
    };
    if old.is_infinite() {
        return Err("ERR value cannot be Infinity".into());
    }
    let sum = addition.apply(old, options.saturates)?;
    if let Some((new, _)) = sum {
        let text = new.to_text();
        let new = NewValue::from_opaque(text.as_bytes());
        store(&mut key, new, text.as_bytes(), "incrbyfloat", options, expire_at_ms);
    }
    let (new, added) = sum.unwrap_or((old, LongDouble::ZERO));
    call.reply.array(2);
    call.reply.double_text(new.to_text().as_bytes());
    call.reply.double_text(added.to_text().as_bytes());
    Ok(())
}

/// Stores the sum, whose text is `text`, and changes the expiry. An expiry in the past removes the key, which is the
/// only event then.
fn store(
    key: &mut Key<'_>,
    new: NewValue<'_>,
    text: &[u8],
    event: &'static str,
    options: &Options,
    expire_at_ms: Option<i64>,
) {
    let old_expiry_ms = key.expire_at_ms();
    let expire_at_ms = expire_at_ms.filter(|_| !options.only_without_expiry || old_expiry_ms.is_none());
    if expire_at_ms.is_some_and(|at_ms| at_ms <= key.past_ms()) {
        if key.exists() {
            key.set_expiry(expire_at_ms);
            key.journal_expiry();
            key.notify(Event::DEL);
        }
        return;
    }
    let is_removed = options.persists && old_expiry_ms.is_some();
    let kept_ms = old_expiry_ms.filter(|_| !options.persists);
    key.set(new, expire_at_ms.or(kept_ms));
    journal_set(key, text, if is_removed { Expiry::None } else { Expiry::Keep }, expire_at_ms);
    key.notify(Event::string(event));
    if expire_at_ms.is_some() {
        key.notify(Event::EXPIRE);
    } else if is_removed {
        key.notify(Event::PERSIST);
    }
}
