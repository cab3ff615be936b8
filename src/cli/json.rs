//! JSON objects that are written where they are printed: each field is named once, next to its value.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// JSON object with the given fields, in their order.
macro_rules! object {
    ($($fields:tt)*) => {
        $crate::cli::json::JsonObject($crate::cli::json::fields!($($fields)*))
    };
}
pub(crate) use object;

macro_rules! fields {
    () => { () };
    ($name:literal: $value:expr $(, $($rest:tt)*)?) => {
        ($name, $value, $crate::cli::json::fields!($($($rest)*)?))
    };
}
pub(crate) use fields;

#[derive(Clone)]
pub struct JsonObject<F>(pub F);

/// Fields of two objects in one, such as those of a report and of a library's type; `None` has no fields.
#[derive(Clone, Serialize)]
pub struct Joined<A, B> {
    #[serde(flatten)]
    first: A,
    #[serde(flatten)]
    pub second: B,
}

pub fn joined<A: Serialize, B: Serialize>(first: A, second: B) -> Joined<A, B> {
    Joined { first, second }
}

/// Fields of a [`JsonObject`]: none, or the name and the value of one, and the others.
pub trait JsonFields {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

impl JsonFields for () {
    fn put<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<T: Serialize, F: JsonFields> JsonFields for (&str, T, F) {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(self.0, &self.1)?;
        self.2.put(map)
    }
}

impl<F: JsonFields> Serialize for JsonObject<F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.0.put(&mut map)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_written_in_their_order() {
        let inner = object! { "z": 1, "a": [0.5] };
        let outer = object! { "b": inner, "null": None::<u8> };
        let text = serde_json::to_string(&outer).unwrap();
        assert_eq!(text, r#"{"b":{"z":1,"a":[0.5]},"null":null}"#);
        let none = None::<super::JsonObject<()>>;
        let joined = super::joined(none, super::joined(object! { "z": 1 }, object! { "a": 2 }));
        assert_eq!(serde_json::to_string(&joined).unwrap(), r#"{"z":1,"a":2}"#);
    }
}
