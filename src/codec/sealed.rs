//! Small JSON files that carry their own checksum: readers use them without the manifest, which
//! only the writer may open.
//!
//! The object has one more field, `checksum`: XXH3-64 of the object without it, written compactly
//! in the order of its fields, as 16 hexadecimal digits.

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

/// `content` as a text that ends with a line feed.
pub(crate) fn to_text(content: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let checksum = checksum(content)?;
    let mut text = serde_json::to_vec_pretty(&Sealed { content, checksum })?;
    text.push(b'\n');
    Ok(text)
}

/// The content of a text, if it is whole; else what is wrong.
pub(crate) fn from_text<T: Serialize + DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let sealed: Sealed<T> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match checksum(&sealed.content) {
        Ok(sum) if sum == sealed.checksum => Ok(sealed.content),
        _ => Err("it does not match its checksum".into()),
    }
}
