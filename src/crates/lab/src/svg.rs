//! Drawing as SVG text on a white ground, so that it is readable on light and dark pages. Coordinates are rounded to a
//! tenth: the same drawing gives the same bytes everywhere.

use std::fmt::Write;

/// Point: distance to the right, and downwards.
pub type At = (f64, f64);

/// Drawing in progress.
#[derive(Debug)]
pub struct Svg(String);

impl Svg {
    /// Creates an empty drawing of this size; `font_size` is the default for texts.
    pub fn new(width: f64, height: f64, font_size: u32) -> Svg {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"{font_size}\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        ))
    }

    /// Draws a straight line.
    pub fn rule(&mut self, (x1, y1): At, (x2, y2): At, colour: &str) {
        let _ = writeln!(
            self.0,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
        );
    }

    /// Draws a line through all `points`, with further attributes.
    pub fn path(&mut self, points: &[At], attributes: &str) {
        let points = joined(points);
        let _ = writeln!(
            self.0,
            "<polyline points=\"{points}\" fill=\"none\" {attributes}/>"
        );
    }

    /// Draws a filled polygon with these corners.
    pub fn polygon(&mut self, corners: &[At], attributes: &str) {
        let corners = joined(corners);
        let _ = writeln!(self.0, "<polygon points=\"{corners}\" {attributes}/>");
    }

    /// Draws a filled circle.
    pub fn circle(&mut self, (x, y): At, radius: f64, attributes: &str) {
        let _ = writeln!(
            self.0,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" {attributes}/>"
        );
    }

    /// Writes text whose `anchor` (start, middle or end) is at that point.
    pub fn text(&mut self, at: At, anchor: &str, words: &str) {
        self.text_with(at, anchor, "", words);
    }

    /// Writes text with further attributes.
    pub fn text_with(&mut self, (x, y): At, anchor: &str, attributes: &str, words: &str) {
        let space = if attributes.is_empty() { "" } else { " " };
        let words = words
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{space}{attributes}>{words}</text>"
        );
    }

    /// Returns the whole file.
    pub fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

fn joined(points: &[At]) -> String {
    let points = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}"));
    points.collect::<Vec<_>>().join(" ")
}
