//! The text format 0.0.4 of Prometheus: each metric is two lines that describe it, then one line per sample.
//!
//! Source: "Exposition formats" in Prometheus's documentation, section "Text-based format".

use std::fmt::Write;

use super::metric::{Metric, Scene, Source};

/// The output that receives the samples of one metric.
pub(super) struct Samples<'t> {
    metric: &'t Metric,
    text: &'t mut String,
}

impl Samples<'_> {
    /// Writes a sample; `labels` are the values of the metric's labels, in the order of their names.
    pub(super) fn add(&mut self, labels: &[&str], value: f64) {
        self.line("", labels, None, value);
    }

    /// Writes a histogram: for each of the ascending `bounds`, the number of observations up to that bound, then the
    /// count and the sum of all observations.
    pub(super) fn histogram(
        &mut self,
        labels: &[&str],
        bounds: impl Iterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        for (bound, at_most) in bounds {
            self.line("_bucket", labels, Some(&bound.to_string()), at_most as f64);
        }
        self.line("_bucket", labels, Some("+Inf"), count as f64);
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, count as f64);
    }

    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: f64) {
        assert_eq!(labels.len(), self.metric.labels.len(), "{} has other labels", self.metric.name);
        let text = &mut *self.text;
        text.push_str(self.metric.name);
        text.push_str(suffix);
        let names = self.metric.labels.iter().copied().chain(bound.map(|_| "le"));
        let values = labels.iter().copied().chain(bound);
        for (index, (name, value)) in names.zip(values).enumerate() {
            text.push(if index == 0 { '{' } else { ',' });
            text.push_str(name);
            text.push_str("=\"");
            escape(value, true, text);
            text.push('"');
        }
        if !labels.is_empty() || bound.is_some() {
            text.push('}');
        }
        // All values are finite, so integers are written without a decimal point or exponent.
        writeln!(text, " {value}").expect("a string takes all");
    }
}

/// Writes a metric with all its samples.
pub(super) fn write(metric: &Metric, scene: &Scene<'_>, text: &mut String) {
    text.push_str("# HELP ");
    text.push_str(metric.name);
    text.push(' ');
    escape(metric.help, false, text);
    text.push_str("\n# TYPE ");
    text.push_str(metric.name);
    text.push(' ');
    text.push_str(metric.kind.name());
    text.push('\n');
    let mut samples = Samples { metric, text };
    match metric.source {
        Source::One(value) => samples.add(&[], value(scene)),
        Source::Each(write) => write(scene, &mut samples),
    }
}

/// Appends a value, escaping characters that are special in the text format.
fn escape(value: &str, is_quoted: bool, text: &mut String) {
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if is_quoted => text.push_str("\\\""),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::metric::{Kind, labelled};
    use super::*;

    fn metric(kind: Kind) -> Metric {
        labelled(kind, "m", &["a"], "", |_, _| {})
    }

    #[test]
    fn values_of_labels_are_escaped() {
        let (metric, mut text) = (metric(Kind::Gauge), String::new());
        Samples { metric: &metric, text: &mut text }.add(&["x\"y\\z\n\u{e9}"], 0.5);
        assert_eq!(text, "m{a=\"x\\\"y\\\\z\\n\u{e9}\"} 0.5\n");
    }

    #[test]
    fn a_histogram_ends_with_all_its_observations() {
        let (metric, mut text) = (metric(Kind::Histogram), String::new());
        let bounds = [(0.000_001, 1), (0.5, 3)].into_iter();
        Samples { metric: &metric, text: &mut text }.histogram(&["x"], bounds, 4, 1e9);
        let expected = "m_bucket{a=\"x\",le=\"0.000001\"} 1\nm_bucket{a=\"x\",le=\"0.5\"} 3\n\
                        m_bucket{a=\"x\",le=\"+Inf\"} 4\nm_sum{a=\"x\"} 1000000000\nm_count{a=\"x\"} 4\n";
        assert_eq!(text, expected);
    }
}
