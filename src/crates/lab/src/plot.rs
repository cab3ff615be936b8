//! Line plots as SVG: a title, two axes with their units, and a legend beside the plot, where it covers no
//! line. Lines differ in colour, dashes and marks, so that they can be distinguished in black and white. The same data
//! gives the same bytes everywhere: logarithms are `libm`'s.

use crate::svg::{At, Svg};

/// Plot of lines.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// Subtitle.
    pub subtitle: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// Axis of a plot.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Label with the unit.
    pub label: String,
    /// Scale of the values.
    pub scale: Scale,
}

/// Scale of an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Linear from 0.
    Linear,
    /// Linear from a round value below the smallest.
    Range,
    /// Logarithmic. Values that are not above 0 are left out.
    Log,
    /// Values 0, 1, 2 ... are steps with these names.
    Steps(Vec<String>),
}

/// Line of a plot.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Points, in order of x.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 950.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 650.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 400.0;
/// Distance between lines of the legend.
const ENTRY: f64 = 22.0;

/// Okabe and Ito's colours, which colour-blind people can distinguish as well; without the light yellow.
const COLOURS: [&str; 7] = [
    "#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
];
const DASHES: [&str; 5] = ["none", "7 3", "2 3", "10 3 2 3", "1 4"];

/// Axis with its range.
struct AxisRange {
    log: bool,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    /// Values of grid lines with their labels.
    ticks: Vec<(f64, String)>,
}

impl AxisRange {
    fn new(scale: &Scale, values: impl Iterator<Item = f64>, start: f64, end: f64) -> AxisRange {
        let log = *scale == Scale::Log;
        let shown = values.filter(|v| v.is_finite() && (!log || *v > 0.0));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let (from, to, ticks) = match scale {
            Scale::Linear => even(0.0, high),
            Scale::Range => even(low, high),
            Scale::Log => logarithmic(low, high),
            Scale::Steps(names) => {
                let ticks = names.iter().enumerate();
                let ticks = ticks.map(|(at, name)| (at as f64, name.clone())).collect();
                (-0.3, names.len() as f64 - 0.7, ticks)
            }
        };
        AxisRange {
            log,
            from,
            to,
            start,
            end,
            ticks,
        }
    }

    fn at(&self, value: f64) -> Option<f64> {
        let scaled = |v: f64| if self.log { libm::log10(v) } else { v };
        if self.log && value <= 0.0 {
            return None;
        }
        let (from, to) = (scaled(self.from), scaled(self.to));
        let part = (scaled(value) - from) / (to - from);
        part.is_finite()
            .then_some(self.start + part * (self.end - self.start))
    }
}

/// Returns a linear range with ticks, from a round value up to `low`, which is at least 0, to one from `high` on, in at
/// most ten round steps.
fn even(low: f64, high: f64) -> (f64, f64, Vec<(f64, String)>) {
    let high = if high > low { high } else { low + 1.0 };
    // One step is reserved for a `low` and a `high` that are not round.
    let most = if low > 0.0 { 9.0 } else { 10.0 };
    let step = step(high - low, most);
    let first = (low / step * (1.0 + 1e-9)).floor();
    let last = (high / step * (1.0 - 1e-9)).ceil();
    let digits = -libm::floor(libm::log10(step) + 1e-9);
    let ticks = (first as i64..=last as i64).map(|at| at as f64 * step);
    let ticks = ticks.map(|value| (value, rounded(value, digits))).collect();
    (first * step, last * step, ticks)
}

/// Returns the smallest step of 1, 2 or 5 times a power of ten of which at most `most` cover `span`.
pub fn step(span: f64, most: f64) -> f64 {
    let power = power_of_ten(span / most);
    let fits = |factor: &&f64| span <= most * **factor * power * (1.0 + 1e-9);
    [1.0, 2.0, 5.0].iter().find(fits).unwrap_or(&10.0) * power
}

/// Formats a tick's value with this number of digits after the point.
fn rounded(value: f64, digits: f64) -> String {
    if !(0.0..=4.0).contains(&digits) {
        return number(value);
    }
    let text = format!("{value:.*}", digits as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Returns a logarithmic range with ticks, from and to 1, 2 or 5 times a power of ten; over more than three decades,
/// powers of ten only.
fn logarithmic(low: f64, high: f64) -> (f64, f64, Vec<(f64, String)>) {
    let factors: &[f64] = if high / low > 1000.0 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut round = Vec::new();
    let mut power = power_of_ten(low) / 10.0;
    while power <= high * 10.0 {
        round.extend(factors.iter().map(|factor| factor * power));
        power *= 10.0;
    }
    let slack = 1.0 + 1e-9;
    let first = round.partition_point(|&value| value <= low * slack).max(1) - 1;
    let last = round
        .partition_point(|&value| value < high / slack)
        .min(round.len() - 1);
    let (first, last) = (first, last.max(first + 1).min(round.len() - 1));
    let ticks = round[first..=last]
        .iter()
        .map(|&value| (value, number(value)));
    (round[first], round[last], ticks.collect())
}

/// Returns the largest power of ten that is not above `value`, up to rounding.
fn power_of_ten(value: f64) -> f64 {
    libm::pow(10.0, libm::floor(libm::log10(value) + 1e-9))
}

/// Formats a tick's value, which is 1, 2 or 5 times something round.
fn number(value: f64) -> String {
    let digits = match value {
        v if v == 0.0 || v >= 9.99 => 0,
        v => (-libm::floor(libm::log10(v) + 1e-9)).max(0.0) as usize,
    };
    let text = match digits {
        0..=4 => format!(
            "{value:.*}",
            digits.max(usize::from(value > 0.0 && value.fract() > 1e-6))
        ),
        _ => format!("{value:.0e}"),
    };
    if text.contains('.') && !text.contains('e') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

impl Plot {
    /// Returns the whole drawing.
    pub fn svg(&self) -> String {
        self.drawn(true)
    }

    /// Returns the drawing with points that are not joined.
    pub fn scatter(&self) -> String {
        self.drawn(false)
    }

    fn drawn(&self, joined: bool) -> String {
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let x = AxisRange::new(&self.x.scale, all().map(|point| point.0), LEFT, RIGHT);
        let y = AxisRange::new(&self.y.scale, all().map(|point| point.1), BOTTOM, TOP);
        let mut svg = Svg::new(WIDTH, HEIGHT, 13);
        let title = "font-size=\"17\" font-weight=\"bold\"";
        svg.text_with((LEFT, 26.0), "start", title, &self.title);
        svg.text_with((LEFT, 46.0), "start", "fill=\"#555\"", &self.subtitle);
        self.axes(&mut svg, &x, &y);
        for (nth, line) in self.lines.iter().enumerate() {
            draw(&mut svg, nth, line, (&x, &y), joined);
        }
        for (nth, line) in self.lines.iter().enumerate() {
            let at = TOP + 10.0 + nth as f64 * ENTRY;
            if joined {
                path(&mut svg, nth, &[(RIGHT + 22.0, at), (RIGHT + 62.0, at)]);
            }
            mark(&mut svg, nth, (RIGHT + 42.0, at));
            svg.text((RIGHT + 70.0, at + 4.5), "start", &line.name);
        }
        svg.finish()
    }

    fn axes(&self, svg: &mut Svg, x: &AxisRange, y: &AxisRange) {
        for (value, name) in &x.ticks {
            if let Some(at) = x.at(*value) {
                svg.rule((at, TOP), (at, BOTTOM), "#e4e4e4");
                svg.text((at, BOTTOM + 18.0), "middle", name);
            }
        }
        for (value, name) in &y.ticks {
            if let Some(at) = y.at(*value) {
                svg.rule((LEFT, at), (RIGHT, at), "#e4e4e4");
                svg.text((LEFT - 8.0, at + 4.5), "end", name);
            }
        }
        svg.rule((LEFT, BOTTOM), (RIGHT, BOTTOM), "#333");
        svg.rule((LEFT, TOP), (LEFT, BOTTOM), "#333");
        let middle = (LEFT + RIGHT) / 2.0;
        svg.text((middle, BOTTOM + 42.0), "middle", &self.x.label);
        let (at, down) = (20.0, (TOP + BOTTOM) / 2.0);
        let turned = format!("transform=\"rotate(-90 {at:.1} {down:.1})\"");
        svg.text_with((at, down), "middle", &turned, &self.y.label);
    }
}

fn draw(svg: &mut Svg, nth: usize, line: &Line, (x, y): (&AxisRange, &AxisRange), joined: bool) {
    let points = line.points.iter();
    let points: Vec<At> = points
        .filter_map(|&(across, up)| Some((x.at(across)?, y.at(up)?)))
        .collect();
    if joined {
        path(svg, nth, &points);
    }
    for &point in &points {
        mark(svg, nth, point);
    }
}

fn path(svg: &mut Svg, nth: usize, points: &[At]) {
    let (colour, dashes) = (COLOURS[nth % COLOURS.len()], DASHES[nth % DASHES.len()]);
    let dashed = format!("stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dashes}\"");
    svg.path(points, &dashed);
}

/// Draws a mark in the line's own shape: shapes repeat after eight lines, colours after seven.
fn mark(svg: &mut Svg, nth: usize, (x, y): At) {
    let colour = COLOURS[nth % COLOURS.len()];
    let fill = if nth % 8 < 4 { colour } else { "white" };
    let filled = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.4\"");
    let corners: &[At] = match nth % 4 {
        0 => return svg.circle((x, y), 3.6, &filled),
        1 => &[(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)],
        2 => &[(0.0, -4.6), (4.4, 3.4), (-4.4, 3.4)],
        _ => &[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)],
    };
    let corners: Vec<At> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    svg.polygon(&corners, &filled);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: (f64, f64, Vec<(f64, String)>)) -> String {
        let labels: Vec<String> = ticks.2.into_iter().map(|tick| tick.1).collect();
        labels.join(" ")
    }

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        assert_eq!(labels(even(0.0, 10.0)), "0 1 2 3 4 5 6 7 8 9 10");
        assert_eq!(labels(even(0.0, 2.83)), "0 0.5 1 1.5 2 2.5 3");
        assert_eq!(
            labels(even(0.0, 0.0)),
            "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1"
        );
        assert_eq!(labels(even(0.0, 135.0)), "0 20 40 60 80 100 120 140");
        // Labels have the digits of the step: 0.12 is not 0.1.
        assert_eq!(labels(even(0.0, 0.113)), "0 0.02 0.04 0.06 0.08 0.1 0.12");
        assert_eq!(
            labels(even(0.3464, 0.3980)),
            "0.34 0.35 0.36 0.37 0.38 0.39 0.4"
        );
        assert_eq!(labels(even(0.5, 0.5)), "0.4 0.6 0.8 1 1.2 1.4 1.6");
        assert_eq!(labels(logarithmic(2.4, 135.0)), "2 5 10 20 50 100 200");
        assert_eq!(labels(logarithmic(10.0, 100.0)), "10 20 50 100");
        assert_eq!(
            labels(logarithmic(0.0003, 60.0)),
            "0.0001 0.001 0.01 0.1 1 10 100"
        );
        assert_eq!(labels(logarithmic(5.0, 5.0)), "5 10");
        for (low, high) in [(1e-9, 3.0), (0.7, 0.71), (3e4, 9e7)] {
            let (from, to, ticks) = logarithmic(low, high);
            assert!(from <= low && to >= high && ticks.len() >= 2);
        }
    }

    /// Marks are at the positions of their values: x from 0 to 10 over 574, y from 1 to 100 over 338 upwards.
    #[test]
    fn points_lie_where_their_values_are() {
        let axis = |label: &str, scale| Axis {
            label: label.into(),
            scale,
        };
        let points = vec![(0.0, 1.0), (5.0, 10.0), (10.0, 100.0), (7.0, 0.0)];
        let plot = Plot {
            title: "a < b".into(),
            subtitle: "s".into(),
            x: axis("passes", Scale::Linear),
            y: axis("error (%)", Scale::Log),
            lines: vec![Line {
                name: "one".into(),
                points,
            }],
        };
        let svg = plot.svg();
        let drawn = "<polyline points=\"76.0,400.0 363.0,231.0 650.0,62.0\"";
        assert!(svg.contains(drawn), "{svg}");
        for label in [">a &lt; b<", ">passes<", ">error (%)<", ">one<", ">10<"] {
            assert!(svg.contains(label), "{label}");
        }
        // A value of 0 has no place on a logarithmic axis: three marks, and one in the legend.
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg, plot.svg());
        let scatter = plot.scatter();
        assert_eq!(scatter.matches("<circle").count(), 4);
        assert!(!scatter.contains("<polyline"));
    }
}
