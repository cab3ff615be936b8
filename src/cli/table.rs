//! Tables for people, whose columns each declare head, width and content; and lists of facts with their names.

use std::io::{self, Write};

struct TextColumn<'a, R> {
    head: &'a str,
    width: usize,
    is_text: bool,
    cell: Box<dyn Fn(&R) -> String + 'a>,
}

pub struct TextTable<'a, R> {
    gap: &'static str,
    columns: Vec<TextColumn<'a, R>>,
}

impl<'a, R> TextTable<'a, R> {
    pub fn new(gap: &'static str) -> TextTable<'a, R> {
        TextTable {
            gap,
            columns: Vec::new(),
        }
    }

    /// Adds a column of numbers, aligned right in at least `width` characters.
    pub fn number(
        mut self,
        head: &'a str,
        width: usize,
        cell: impl Fn(&R) -> String + 'a,
    ) -> TextTable<'a, R> {
        self.columns.push(TextColumn {
            head,
            width,
            is_text: false,
            cell: Box::new(cell),
        });
        self
    }

    /// Adds a column of text, aligned left in at least `width` characters.
    pub fn text(
        self,
        head: &'a str,
        width: usize,
        cell: impl Fn(&R) -> String + 'a,
    ) -> TextTable<'a, R> {
        let mut table = self.number(head, width, cell);
        if let Some(column) = table.columns.last_mut() {
            column.is_text = true;
        }
        table
    }

    pub fn write_all(&self, out: &mut dyn Write, rows: &[R]) -> io::Result<()> {
        writeln!(out, "{}", self.head())?;
        rows.iter().try_for_each(|row| self.write(out, row))
    }

    pub fn head(&self) -> String {
        self.line(|column| column.head.to_owned())
    }

    pub fn write(&self, out: &mut dyn Write, row: &R) -> io::Result<()> {
        writeln!(out, "{}", self.line(|column| (column.cell)(row)))
    }

    /// Returns a line of cells; empty cells at its end are left out.
    fn line(&self, cell: impl Fn(&TextColumn<'_, R>) -> String) -> String {
        let mut cells: Vec<String> = self.columns.iter().map(cell).collect();
        while cells.last().is_some_and(String::is_empty) {
            cells.pop();
        }
        let padded = self.columns.iter().zip(cells);
        let padded = padded.map(|(column, cell)| {
            let width = column.width;
            if column.is_text {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        padded.collect::<Vec<_>>().join(self.gap)
    }
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
        let end = |row: &(u8, &str)| if row.0 > 9 { "x".into() } else { String::new() };
        let table = TextTable::new("  ")
            .number("n", 3, |row: &(u8, &str)| row.0.to_string())
            .text("name", 6, |row| row.1.into())
            .number("end", 3, end);
        let mut out = Vec::new();
        let rows = [(7, "a"), (12, "longer than that"), (1, "")];
        table.write_all(&mut out, &rows).unwrap();
        let lines = "  n  name    end\n  7  a     \n 12  longer than that    x\n  1\n";
        assert_eq!(String::from_utf8(out).unwrap(), lines);
    }
}
