//! Plots as SVG: lines over an axis, in the colours of the surrounding page.

use std::fmt::Write;

use super::html::escape;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 260.0;
/// The margins for the axes on each side.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 44.0;

/// The approximate number of horizontal grid lines.
const TICKS: f64 = 5.0;

/// The horizontal axis.
pub(super) enum Axis {
    /// Numbers from 0 to this maximum.
    Numbers(f64),
    /// Words, evenly spaced: the points are at 0, 1, 2, ….
    Words(Vec<String>),
}

/// A line and its name.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// A plot.
pub(super) struct Plot {
    pub(super) title: String,
    pub(super) below: &'static str,
    pub(super) axis: Axis,
    pub(super) lines: Vec<Line>,
}

impl Plot {
    /// Renders the `svg` element.
    pub(super) fn render(&self) -> String {
        let top = self.lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
        let step = nice_step(top);
        let top = (top / step).ceil().max(1.0) * step;
        let right = match &self.axis {
            Axis::Numbers(end) => end.max(f64::MIN_POSITIVE),
            Axis::Words(words) => words.len().saturating_sub(1).max(1) as f64,
        };
        let x = |value: f64| LEFT + value / right * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
        let mut svg = String::new();
        let mut put = |text: std::fmt::Arguments<'_>| {
            svg.write_fmt(text).and_then(|()| svg.write_char('\n')).expect("writing to a string cannot fail");
        };
        let title = escape(&self.title);
        put(format_args!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">"));
        put(format_args!("<text class=\"title\" x=\"{LEFT}\" y=\"18\">{title}</text>"));
        let mut value = 0.0;
        while value <= top * 1.0001 {
            let at = y(value);
            put(format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>",
                WIDTH - RIGHT
            ));
            put(format_args!(
                "<text class=\"left\" x=\"{}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                at + 4.0,
                short(value)
            ));
            value += step;
        }
        for (at, word) in self.words_below(right) {
            put(format_args!(
                "<text class=\"below\" x=\"{:.1}\" y=\"{}\">{}</text>",
                x(at),
                HEIGHT - BOTTOM + 18.0,
                escape(&word)
            ));
        }
        put(format_args!(
            "<text class=\"below\" x=\"{}\" y=\"{}\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 8.0,
            escape(self.below)
        ));
        for (index, line) in self.lines.iter().enumerate() {
            let points: Vec<String> =
                line.points.iter().map(|point| format!("{:.1},{:.1}", x(point.0), y(point.1))).collect();
            put(format_args!("<polyline class=\"line l{index}\" points=\"{}\"/>", points.join(" ")));
            if line.points.len() <= MARKED_POINTS_MAX {
                for point in &line.points {
                    put(format_args!(
                        "<circle class=\"dot d{index}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}</title></circle>",
                        x(point.0),
                        y(point.1),
                        short(point.1)
                    ));
                }
            }
            if self.lines.len() > 1 {
                put(format_args!(
                    "<text class=\"name d{index}\" x=\"{}\" y=\"18\">{}</text>",
                    WIDTH - RIGHT - 60.0 * (self.lines.len() - 1 - index) as f64,
                    escape(line.name)
                ));
            }
        }
        put(format_args!("</svg>"));
        svg
    }

    /// Returns the labels below the axis with their positions.
    fn words_below(&self, right: f64) -> Vec<(f64, String)> {
        match &self.axis {
            Axis::Words(words) => {
                words.iter().enumerate().map(|(index, word)| (index as f64, word.clone())).collect()
            }
            Axis::Numbers(_) => {
                let step = nice_step(right);
                let count = (right / step + 1e-6) as u32;
                (0..=count).map(|index| (f64::from(index) * step, short(f64::from(index) * step))).collect()
            }
        }
    }
}

/// The number of points above which a line has no dots.
const MARKED_POINTS_MAX: usize = 12;

/// Returns a step between grid lines, 1, 2 or 5 times a power of ten, with about [`TICKS`] steps up to `top`.
fn nice_step(top: f64) -> f64 {
    if top <= 0.0 || !top.is_finite() {
        return 1.0;
    }
    let rough = top / TICKS;
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(power)
}

/// Formats a number in few characters: 1.5M, 20k, 0.25.
fn short(value: f64) -> String {
    let (number, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let text = format!("{number:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_numbers_are_round() {
        assert_eq!([nice_step(9.0), nice_step(100_000.0), nice_step(0.03)], [2.0, 20_000.0, 0.01]);
        assert_eq!(nice_step(0.0), 1.0);
        assert_eq!(
            [short(0.0), short(1_500_000.0), short(20_000.0), short(0.25)],
            ["0", "1.5M", "20k", "0.25"]
        );
    }

    #[test]
    fn plots_without_points_are_valid() {
        for points in [vec![], vec![(0.0, 0.0)], vec![(0.0, 5.0), (1.0, 7.0)]] {
            let axis = Axis::Words(vec!["<1>".to_owned(), "2".to_owned()]);
            let plot =
                Plot { title: "a & b".to_owned(), below: "x", axis, lines: vec![Line { name: "l", points }] };
            let svg = plot.render();
            assert!(
                svg.contains("a &amp; b") && svg.contains("&lt;1&gt;") && svg.contains("<polyline"),
                "{svg}"
            );
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
