//! Guesses whether lines are those of a graph, and of which format.

use std::collections::HashSet;

use memchr::memrchr;

use super::Format;
use crate::decode::groups::whole_number;
use crate::decode::lines;
use crate::url;

/// Guesses the format of a graph: edges have two fields in every line; without a tab anywhere, other lines could be
/// anything.
pub(super) fn guess_graph(head: &[u8]) -> Result<(Format, String), String> {
    // The last line may be cut.
    let whole = memrchr(b'\n', head).map_or(head, |lf| &head[..lf]);
    let (mut data, mut tabs, mut pairs) = (0u64, 0u64, 0u64);
    let mut spaced = None;
    // True if a word came twice, or is a number or a URL.
    let (mut seen, mut is_graph) = (HashSet::new(), false);
    let mut weights = WeightLines::default();
    for (line, number) in lines::lines(whole).zip(1u64..) {
        let text = line.text.trim_ascii();
        if text.is_empty() || text[0] == b'#' {
            continue;
        }
        let words = text.split(|byte| matches!(byte, b' ' | b'\t'));
        let mut words = words.filter(|word| !word.is_empty());
        let fields = words.clone().count();
        data += 1;
        let has_tab = line.text.contains(&b'\t');
        if fields > 1 && !has_tab {
            spaced.get_or_insert(number);
        }
        tabs += u64::from(has_tab);
        pairs += u64::from(fields == 2);
        weights.add(line.text, number);
        is_graph = is_graph
            || words.any(|word| {
                let is_number = word.iter().all(u8::is_ascii_digit);
                url::is_web(word) || is_number || !seen.insert(word)
            });
    }
    if let Some(line) = weights.fraction {
        return Err(format!(
            "line {line} has a decimal number, which may be a score or a weight rather than a page (weights are whole numbers)"
        ));
    }
    match (data, tabs) {
        (0, _) => Err("it has comments only".to_owned()),
        (_, 0) if pairs == data && !is_graph => Err(
            "its lines have two words and no tab, and no word comes twice: a message rather than links".to_owned(),
        ),
        _ if pairs == data => Ok((Format::Edges, "every line has two fields".to_owned())),
        (_, 0) => Err("its lines have neither tabs nor two fields".to_owned()),
        _ if spaced.is_some() => Err(format!(
            "some lines are split by tabs, and line {} has words without one",
            spaced.unwrap_or_default()
        )),
        _ if weights.lines == data && weights.is_certain => Ok((
            Format::Edges,
            "every line has two fields and a weight".to_owned(),
        )),
        _ => {
            let message = "its lines are split by tabs, and not all have two fields";
            Ok((Format::Adjacency, message.to_owned()))
        }
    }
}

/// Counts lines like `from TAB to TAB weight`, which may also be an adjacency list: `1 TAB 2 TAB 3`. It is not one if
/// names are not numbers, a page occurs twice in a row, or weights have a decimal point.
#[derive(Default)]
struct WeightLines<'h> {
    lines: u64,
    is_certain: bool,
    last: &'h [u8],
    /// First line with a decimal number that is neither a weight nor, judging by the line's first field, a name.
    fraction: Option<u64>,
}

impl<'h> WeightLines<'h> {
    fn add(&mut self, line: &'h [u8], number: u64) {
        let line = line.trim_ascii();
        let separator = if line.contains(&b'\t') { b'\t' } else { b' ' };
        let mut fields = line.split(|&byte| byte == separator);
        let from = fields.next().unwrap_or_default();
        let fields: Vec<&[u8]> = fields.collect();
        let is_number = |field: &[u8]| whole_number(field).is_some();
        let mut decimals = (0..fields.len()).filter(|&at| is_decimal(fields[at]));
        let is_no_name = |at: usize| match (at, fields.len()) {
            (1, 2) => !is_number(fields[1]),
            _ => !is_decimal(from),
        };
        if decimals.any(is_no_name) {
            self.fraction.get_or_insert(number);
        }
        if let [to, weight] = fields[..]
            && separator == b'\t'
            && is_number(weight)
        {
            self.lines += 1;
            self.is_certain |= !is_number(from) || !is_number(to) || from == self.last;
            self.is_certain |= is_decimal(weight) && !is_decimal(from);
            self.last = from;
        }
    }
}

/// Returns whether a field is a number that is not digits only: a weight or score, as programs write them.
fn is_decimal(field: &[u8]) -> bool {
    let text = std::str::from_utf8(field).unwrap_or_default();
    let has_sign = text.starts_with(['-', '+']);
    (has_sign || text.contains('.') || text.contains("e-"))
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.parse::<f64>().is_ok()
}
