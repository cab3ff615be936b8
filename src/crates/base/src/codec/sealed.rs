//! Small JSON files with their own checksum: readers use them without the manifest, which only the writer may open.
//!
//! The object has one more field, `checksum`: XXH3-64 of the object without it, written compactly in the order of its
//! fields, as 16 hexadecimal digits.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    #[serde(flatten)]
    content: T,
    checksum: String,
}

fn checksum(content: &impl Serialize) -> serde_json::Result<String> {
    Ok(format!("{:016x}", xxh3_64(&serde_json::to_vec(content)?)))
}

/// Returns `content` as a text that ends with a line feed.
pub fn to_text(content: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let checksum = checksum(content)?;
    let mut text = serde_json::to_vec_pretty(&Sealed { content, checksum })?;
    text.push(b'\n');
    Ok(text)
}

/// Parses a text and checks its checksum, also over unknown fields. The error says what is wrong.
pub fn from_text<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let sealed: Sealed<T> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let mut compact = compact(text);
    let seal = format!(",\"checksum\":\"{}\"}}", sealed.checksum);
    let content = compact.strip_suffix(seal.as_bytes()).map(<[u8]>::len);
    let content = content.ok_or("its checksum is not its last field")?;
    compact.truncate(content);
    compact.push(b'}');
    if format!("{:016x}", xxh3_64(&compact)) == sealed.checksum {
        Ok(sealed.content)
    } else {
        Err("it does not match its checksum".into())
    }
}

/// Removes the white space between the tokens of JSON.
fn compact(text: &[u8]) -> Vec<u8> {
    let (mut in_string, mut escaped) = (false, false);
    let keep = |byte: &u8| {
        let is_quote = *byte == b'"' && !escaped;
        escaped = in_string && *byte == b'\\' && !escaped;
        in_string ^= is_quote;
        in_string || is_quote || !byte.is_ascii_whitespace()
    };
    text.iter().copied().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Old {
        name: String,
        gone: bool,
        size: f64,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct New {
        name: String,
        size: f64,
    }

    #[test]
    fn only_removed_fields_are_ignored() {
        let name = "a \\\" \n , { \u{1} é".to_owned();
        let old = Old {
            name: name.clone(),
            gone: true,
            size: 0.1,
        };
        let text = to_text(&old).unwrap();
        assert_eq!(from_text::<Old>(&text), Ok(old));
        assert_eq!(from_text::<New>(&text), Ok(New { name, size: 0.1 }));
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] ^= 1;
            let same = compact(&other) == compact(&text);
            assert!(from_text::<New>(&other).is_err() || same, "{at}");
        }
    }
}
