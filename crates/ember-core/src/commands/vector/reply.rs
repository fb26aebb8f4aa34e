//! The options and replies of searches in vector indexes.

use std::collections::HashMap;

use ember_protocol::{Args, Reply, number};

use crate::commands::arguments::is_word;
use crate::commands::vector_set::search::{LONG_PATH, filter_error};
use crate::error::CommandError;
use crate::types::vector_set::{FieldPaths, Filter, Metric, VectorSet, steps_to_compile};

/// The default number of returned elements.
const COUNT_DEFAULT: usize = 10;

/// The option words for the maximum number of elements, which all have the same meaning.
const COUNT_WORDS: [&str; 4] = ["K", "TOP", "KNN", "LIMIT"];

/// The words that begin an option, which also end the list of fields after RETURN.
const WORDS: [&str; 11] = [
    "K",
    "TOP",
    "KNN",
    "LIMIT",
    "EF",
    "NPROBE",
    "FILTER",
    "RETURN",
    "WITHSCORES",
    "WITHVECTORS",
    "AGGREGATE",
];

/// The options of a search, which follow its vectors.
pub(super) struct Options<'a> {
    pub(super) count: usize,
    pub(super) width: Option<usize>,
    /// The number of lists to search.
    pub(super) probes: Option<usize>,
    /// The text of the filter.
    filter: Option<&'a [u8]>,
    /// The way in which the scores of several query vectors are combined.
    pub(super) aggregate: Aggregate,
    with_scores: bool,
    with_vectors: bool,
    fields: Option<Returned<'a>>,
}

/// The fields that the reply contains.
struct Returned<'a> {
    /// The names of the fields as the call contains them, each with the index of its path.
    named: Vec<(&'a [u8], usize)>,
    paths: FieldPaths,
}

/// The way in which the scores of several query vectors are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Average,
    /// The best score counts.
    Maximum,
    /// The worst score counts.
    Minimum,
}

pub(super) fn is_option(args: Args<'_>, at: usize) -> bool {
    WORDS.iter().any(|word| is_word(args, at, word))
}

/// The number of steps for writing one number of a vector.
const STEPS_PER_NUMBER: usize = 2;

/// Parses the field names in the arguments in `range`.
fn returned(args: Args<'_>, range: std::ops::Range<usize>) -> Result<Returned<'_>, CommandError> {
    let (mut places, mut paths) = (HashMap::new(), Vec::new());
    let place = |arg: usize| {
        let name = args.at(arg);
        let place = *places.entry(name).or_insert_with(|| {
            paths.push(name.into());
            paths.len() - 1
        });
        (name, place)
    };
    let named = range.map(place).collect();
    Ok(Returned { named, paths: FieldPaths::new(paths).ok_or(LONG_PATH)? })
}

impl<'a> Options<'a> {
    /// Parses the options of a search in `set` from argument `first` on; `has_queries` if the search may have several
    /// query vectors. Does not compile the filter yet.
    pub(super) fn parse(
        set: &VectorSet,
        args: Args<'a>,
        first: usize,
        has_queries: bool,
    ) -> Result<Options<'a>, CommandError> {
        let mut options = Options {
            count: COUNT_DEFAULT,
            width: None,
            probes: None,
            filter: None,
            aggregate: Aggregate::Average,
            with_scores: false,
            with_vectors: false,
            fields: None,
        };
        let mut at = first;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            let positive = || {
                let number = number::parse_i64(args.at(at + 1)).filter(|&number| number > 0)?;
                Some(usize::try_from(number).unwrap_or(usize::MAX))
            };
            at += if COUNT_WORDS.iter().any(|word| is_word(args, at, word)) && has_value {
                options.count = positive().ok_or("ERR invalid K")?;
                2
            } else if is_word(args, at, "EF") && has_value {
                options.width = Some(positive().ok_or("ERR invalid EF")?);
                2
            } else if is_word(args, at, "NPROBE") && has_value {
                options.probes = Some(positive().ok_or("ERR invalid NPROBE")?);
                2
            } else if is_word(args, at, "FILTER") && has_value {
                options.filter = Some(args.at(at + 1));
                2
            } else if is_word(args, at, "WITHSCORES") {
                options.with_scores = true;
                1
            } else if is_word(args, at, "WITHVECTORS") {
                options.with_vectors = true;
                1
            } else if is_word(args, at, "RETURN") && has_value {
                let end = (at + 1..args.len()).find(|&arg| is_option(args, arg)).unwrap_or(args.len());
                options.fields = Some(returned(args, at + 1..end)?);
                end - at
            } else if has_queries && is_word(args, at, "AGGREGATE") && has_value {
                options.aggregate = match () {
                    () if is_word(args, at + 1, "AVG") => Aggregate::Average,
                    () if is_word(args, at + 1, "MAX") => Aggregate::Maximum,
                    () if is_word(args, at + 1, "MIN") => Aggregate::Minimum,
                    () => return Err("ERR invalid AGGREGATE".into()),
                };
                2
            } else {
                return Err(CommandError::Syntax);
            };
        }
        if options.probes.is_some() && set.lists().is_none() {
            return Err("ERR NPROBE is for indexes of type IVF".into());
        }
        if options.width.is_some() && set.links() == 0 {
            return Err("ERR EF is for indexes of type HNSW".into());
        }
        Ok(options)
    }

    /// Returns the number of steps for compiling the filter. O(1).
    pub(super) fn steps_to_compile(&self) -> usize {
        self.filter.map_or(0, steps_to_compile)
    }

    /// Compiles the filter. O(length of its text).
    pub(super) fn filter(&self) -> Result<Option<Filter>, CommandError> {
        let compile = |text| Filter::compile_conditions(text).map_err(|error| filter_error(text, error));
        self.filter.map(compile).transpose()
    }

    /// Returns the number of steps for writing the elements `hits`. O(number of elements).
    pub(super) fn steps_to_write(&self, set: &VectorSet, hits: &[(u32, f64)]) -> usize {
        let slots = hits.iter().map(|&(slot, _)| slot);
        let fields = self.fields.as_ref().map_or(0, |Returned { named, paths }| {
            let bytes = set.attributes_len(slots).saturating_mul(paths.depth());
            set.steps_of_attributes(bytes).saturating_add(hits.len() * named.len())
        });
        let numbers = if self.with_vectors { hits.len() * set.dim() } else { 0 };
        fields.saturating_add(numbers * STEPS_PER_NUMBER)
    }

    /// Writes elements with their scores, in the order of `hits`.
    pub(super) fn write(&self, set: &VectorSet, hits: &[(u32, f64)], reply: &mut Reply) {
        reply.array(hits.len());
        for &(slot, score) in hits {
            let element = set.element(slot);
            let parts = usize::from(self.with_scores)
                + usize::from(self.with_vectors)
                + usize::from(self.fields.is_some());
            if parts > 0 {
                reply.array(1 + parts);
            }
            reply.bulk(element.name());
            if self.with_scores {
                reply.double(score);
            }
            if self.with_vectors {
                write_vector(&set.vector(slot), reply);
            }
            let Some(Returned { named, paths }) = &self.fields else { continue };
            reply.array(named.len() * 2);
            let texts = element.attributes().map(|attributes| paths.texts(attributes));
            for &(name, place) in named {
                reply.bulk(name);
                match texts.as_ref().and_then(|texts| texts[place].as_deref()) {
                    Some(text) => reply.bulk(text),
                    None => reply.null(),
                }
            }
        }
    }
}

pub(super) fn write_vector(vector: &[f32], reply: &mut Reply) {
    reply.array(vector.len());
    vector.iter().for_each(|&number| reply.double(number.into()));
}

/// Returns the score for a distance: depending on the metric, the cosine of the angle, the distance of the points, or
/// the inner product.
pub(super) fn score(set: &VectorSet, distance: f32) -> f64 {
    match set.metric() {
        Metric::Cosine => 1.0 - f64::from(distance),
        Metric::L2 | Metric::InnerProduct => set.metric_distance(distance).into(),
    }
}
