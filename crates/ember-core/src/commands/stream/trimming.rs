//! The trimming arguments of XADD and XTRIM.

use ember_protocol::Args;

use super::group_effects::journal_traces;
use super::ids::{exact_id, references_at};
use crate::call::CommandResult;
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::keys::Key;
use crate::turn::Turn;
use crate::types::limits::EncodingLimits;
use crate::types::stream::{BlockLimits, References, Stream, Traces, Trim, Trimmed};

/// The maximum number of blocks whose entries one call with `~` and without `LIMIT` trims.
const BLOCKS_TRIMMED_MAX: u64 = 100;
/// The maximum number of entries that such a call trims if the number of entries per block is not limited.
const ENTRIES_TRIMMED: u64 = 10_000;
/// The maximum number of entries that such a call trims, for blocks of any size.
const ENTRIES_TRIMMED_MAX: u64 = 1_000_000;

/// The trimming that a call requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trimming {
    trim: Trim,
    is_approximate: bool,
    /// The maximum number of entries to trim; 0 means no limit.
    limit: u64,
    references: References,
}

impl Trimming {
    /// Trims the stream, and records deleted entries and removed references in `traces`.
    pub(super) fn apply(&self, stream: &mut Stream, traces: &mut Traces) -> Trimmed {
        stream.trim(self.trim, self.is_approximate, self.limit, self.references, traces)
    }
}

/// Records a trim in commands that Redis before 8.2 also supports: the number of entries that remain, the other entries
/// that were deleted, and the entries that are no longer pending.
///
/// # Errors
/// Returns `WrongType` if the key holds another type.
pub(super) fn journal_trimmed(key: &mut Key<'_>, trimmed: Trimmed, traces: &Traces) -> CommandResult {
    let deleted = traces.deleted().len() as u64;
    if trimmed.entries > deleted {
        let len = key.value::<Stream>()?.map_or(0, |stream| stream.log().len());
        key.journal("XTRIM", |words| _ = words.word(b"MAXLEN").word(b"=").integer(len + deleted));
    }
    journal_traces(key, traces);
    Ok(())
}

/// The trimming options of a call, as parsed so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrimOptions {
    trim: Option<Trim>,
    is_approximate: bool,
    limit: Option<u64>,
    references: Option<References>,
}

impl TrimOptions {
    /// Parses the option at argument `arg` and returns the index of the argument after it; `None` if the argument is
    /// not a trimming option.
    pub(super) fn read(&mut self, args: Args<'_>, arg: usize) -> Result<Option<usize>, CommandError> {
        let following = args.len() - arg - 1;
        let is_len = is_word(args, arg, "MAXLEN");
        if (is_len || is_word(args, arg, "MINID")) && following >= 1 {
            if self.trim.is_some() {
                return Err(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible".into()
                );
            }
            let has_operator = following >= 2 && matches!(args.at(arg + 1), b"~" | b"=");
            self.is_approximate = has_operator && args.at(arg + 1) == b"~";
            let threshold = arg + 1 + usize::from(has_operator);
            self.trim = Some(if is_len {
                Trim::ToLen(not_negative(args, threshold, "ERR The MAXLEN argument must be >= 0.")?)
            } else {
                Trim::BelowId(exact_id(args.at(threshold), 0)?)
            });
            return Ok(Some(threshold + 1));
        }
        if is_word(args, arg, "LIMIT") && following >= 1 {
            self.limit = Some(not_negative(args, arg + 1, "ERR The LIMIT argument must be >= 0.")?);
            return Ok(Some(arg + 2));
        }
        if let (Some(references), None) = (references_at(args, arg), self.references) {
            self.references = Some(references);
            return Ok(Some(arg + 1));
        }
        Ok(None)
    }

    /// Returns the trimming that all options together specify; `None` if the call trims nothing.
    pub(super) fn finish(mut self, is_required: bool, turn: &Turn) -> Result<Option<Trimming>, CommandError> {
        // Redis propagates a trim with `~` as a trim with `=` but keeps its LIMIT, which must not be applied again.
        if turn.is_replay() && !self.is_approximate {
            self.limit = None;
        }
        let limits = turn.settings.encoding;
        if self.limit.is_some_and(|limit| limit != 0) && self.trim.is_none() {
            return Err(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy".into()
            );
        }
        if is_required && self.trim.is_none() {
            return Err("ERR syntax error, XTRIM must be called with a trimming strategy".into());
        }
        if self.limit.is_some() && !self.is_approximate {
            return Err("ERR syntax error, LIMIT cannot be used without the special ~ option".into());
        }
        let limit = self.limit.unwrap_or_else(|| match self.is_approximate {
            true => default_limit(limits.stream_node_max_entries),
            false => 0,
        });
        let references = self.references.unwrap_or_default();
        Ok(self.trim.map(|trim| Trimming { trim, is_approximate: self.is_approximate, limit, references }))
    }
}

fn default_limit(block_entries_max: usize) -> u64 {
    match BLOCKS_TRIMMED_MAX.saturating_mul(block_entries_max as u64) {
        0 => ENTRIES_TRIMMED,
        limit => limit.min(ENTRIES_TRIMMED_MAX),
    }
}

fn not_negative(args: Args<'_>, arg: usize, text: &'static str) -> Result<u64, CommandError> {
    u64::try_from(integer(args, arg)?).map_err(|_| text.into())
}

/// Returns the configured limits of a block of entries.
pub(super) fn block_limits(limits: EncodingLimits) -> BlockLimits {
    BlockLimits { bytes_max: limits.stream_node_max_bytes, entries_max: limits.stream_node_max_entries }
}
