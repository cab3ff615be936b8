//! Panels of points over a common logarithmic axis.

use cashrank_lab::plot::step;
use cashrank_lab::svg::{At, Svg};

/// Curve under its title. Points are in order of `x`; all values are above 0.
pub struct Panel {
    pub title: &'static str,
    pub points: Vec<Point>,
}

#[derive(Clone, Copy)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

const WIDTH: f64 = 720.0;
/// Drawing area of a panel.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 690.0;
const PANEL: f64 = 230.0;
const ABOVE: f64 = 40.0;
const BELOW: f64 = 200.0;
/// Space below the last panel for the numbers of pages.
const FOOT: f64 = 30.0;

/// Returns the whole drawing. There must be at least one point.
pub fn drawing(panels: &[Panel]) -> String {
    let height = panels.len() as f64 * PANEL + FOOT;
    let mut svg = Svg::new(WIDTH, height, 12);
    let xs: Vec<f64> = panels
        .iter()
        .flat_map(|panel| &panel.points)
        .map(|p| p.x.log10())
        .collect();
    let first = xs.iter().copied().fold(f64::INFINITY, f64::min).floor();
    let last = xs
        .iter()
        .copied()
        .fold(0.0, f64::max)
        .ceil()
        .max(first + 1.0);
    let across = |x: f64| LEFT + (x.log10() - first) / (last - first) * (RIGHT - LEFT);
    let decades = || (first as i32..=last as i32).map(|decade| 10f64.powi(decade));
    for (nth, panel) in panels.iter().enumerate() {
        let top = nth as f64 * PANEL;
        for decade in decades().map(across) {
            svg.rule((decade, top + ABOVE), (decade, top + BELOW), "#ddd");
        }
        draw(&mut svg, panel, top, &across);
    }
    for decade in decades() {
        let at = (across(decade), panels.len() as f64 * PANEL - 12.0);
        svg.text(at, "middle", &short(decade));
    }
    let middle = (LEFT + RIGHT) / 2.0;
    svg.text((middle, height - 10.0), "middle", "pages known");
    svg.finish()
}

fn draw(svg: &mut Svg, panel: &Panel, top: f64, across: &impl Fn(f64) -> f64) {
    let most = panel.points.iter().map(|point| point.y).fold(0.0, f64::max);
    let step = step(most, 5.0);
    let ticks = (most / step).ceil();
    let down = |y: f64| top + BELOW - y / (ticks * step) * (BELOW - ABOVE);
    svg.text((LEFT, top + 16.0), "start", panel.title);
    for tick in 0..=ticks as u32 {
        let y = f64::from(tick) * step;
        svg.rule((LEFT, down(y)), (RIGHT, down(y)), "#ddd");
        svg.text((LEFT - 8.0, down(y) + 4.0), "end", &short(y));
    }
    let at = |point: &Point| (across(point.x), down(point.y));
    let path: Vec<At> = panel.points.iter().map(at).collect();
    svg.path(&path, "stroke=\"#1f5fa8\" stroke-width=\"2\"");
    for (&(x, y), point) in path.iter().zip(&panel.points) {
        svg.circle((x, y), 4.0, "fill=\"#1f5fa8\"");
        // Near an edge the label is placed inwards.
        let anchor = match x {
            x if x < LEFT + 30.0 => "start",
            x if x > RIGHT - 30.0 => "end",
            _ => "middle",
        };
        svg.text((x, y - 8.0), anchor, &short(point.y));
    }
}

/// Formats three digits and a unit.
fn short(value: f64) -> String {
    let (scale, unit) = match value {
        v if v >= 999.5e6 => (1e9, " G"),
        v if v >= 999.5e3 => (1e6, " M"),
        v if v >= 999.5 => (1e3, " K"),
        _ => (1.0, ""),
    };
    let value = value / scale;
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_at_most_five() {
        for (most, expected) in [
            (5.0, 1.0),
            (5.1, 2.0),
            (11.0, 5.0),
            (26.0, 10.0),
            (4.2e6, 1e6),
        ] {
            assert!(
                (step(most, 5.0) / expected - 1.0).abs() < 1e-9,
                "{most}: {}",
                step(most, 5.0)
            );
        }
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, expected) in [
            (0.0, "0"),
            (22.04, "22"),
            (13.56, "13.6"),
            (999.6, "1 K"),
            (241.0, "241"),
            (4.254e6, "4.25 M"),
            (1e9, "1 G"),
            (12.34e6, "12.3 M"),
            (100e6, "100 M"),
        ] {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn points_lie_where_their_values_are() {
        let points = [(1e6, 4.0), (1e7, 2.0), (1e8, 1.0)];
        let panel = Panel {
            title: "t",
            points: points.map(|(x, y)| Point { x, y }).into(),
        };
        let svg = drawing(&[panel]);
        // Decades from 6 to 8 across 620, values from 0 to 4 over 160 upwards.
        for (x, y) in [(70.0, 40.0), (380.0, 120.0), (690.0, 160.0)] {
            let circle = format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\"");
            assert!(svg.contains(&circle), "{circle}\n{svg}");
        }
        for label in [">1 M<", ">10 M<", ">100 M<", ">t<"] {
            assert!(svg.contains(label), "{label}");
        }
    }
}
