//! Tables for people, with cells below their heads; and lists of facts with their names.

use std::io::{self, Write};

/// Heads of columns with their widths, the least number of characters: negative for text, which is aligned left.
pub type Columns<'a, const N: usize> = [(&'a str, isize); N];

pub fn write_table<const N: usize>(
    out: &mut dyn Write,
    gap: &str,
    columns: Columns<'_, N>,
    rows: impl IntoIterator<Item = [String; N]>,
) -> io::Result<()> {
    let heads = columns.map(|(head, _)| head.to_owned());
    let mut lines = std::iter::once(heads).chain(rows);
    lines.try_for_each(|cells| writeln!(out, "{}", line(gap, columns, &cells)))
}

/// Returns a line of cells; empty cells at its end are left out.
pub fn line<const N: usize>(gap: &str, columns: Columns<'_, N>, cells: &[String; N]) -> String {
    let last = cells.iter().rposition(|cell| !cell.is_empty());
    let cells = cells.iter().take(last.map_or(0, |last| last + 1));
    let padded = columns.iter().zip(cells).map(|((_, width), cell)| {
        let (size, is_text) = (width.unsigned_abs(), *width < 0);
        if is_text {
            format!("{cell:<size$}")
        } else {
            format!("{cell:>size$}")
        }
    });
    padded.collect::<Vec<_>>().join(gap)
}

/// List of facts, each a line of a name and a value.
pub struct FactList<'a> {
    out: &'a mut dyn Write,
    indent: &'static str,
    width: usize,
}

impl<'a> FactList<'a> {
    /// Returns a list whose names are indented, and take at least `width` characters.
    pub fn new(out: &'a mut dyn Write, indent: &'static str, width: usize) -> FactList<'a> {
        FactList { out, indent, width }
    }

    pub fn add(&mut self, name: &str, value: impl Into<Option<String>>) -> io::Result<()> {
        let Some(value) = value.into() else {
            return Ok(());
        };
        writeln!(self.out, "{}{name:<1$} {value}", self.indent, self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_their_heads() {
        let columns = [("n", 3), ("name", -6), ("end", 3)];
        let end = |n: u8| if n > 9 { "x".into() } else { String::new() };
        let row = |(n, name): (u8, &str)| [n.to_string(), name.into(), end(n)];
        let mut out = Vec::new();
        let rows = [(7, "a"), (12, "longer than that"), (1, "")];
        write_table(&mut out, "  ", columns, rows.map(row)).unwrap();
        let lines = "  n  name    end\n  7  a     \n 12  longer than that    x\n  1\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
    }
}
