//! JSON objects that are written where they are printed: each field is named once, beside its value.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// JSON object with the given fields, in their order. `"name"?: option` leaves a field out if there is no value.
macro_rules! object {
    ($($fields:tt)*) => {
        $crate::cli::json::JsonObject($crate::cli::json::fields!($($fields)*))
    };
}
pub(crate) use object;

macro_rules! fields {
    () => { () };
    ($name:literal: $value:expr $(, $($rest:tt)*)?) => {
        ($crate::cli::json::JsonField($name, $value), $crate::cli::json::fields!($($($rest)*)?))
    };
    ($name:literal?: $value:expr $(, $($rest:tt)*)?) => {
        ($crate::cli::json::OptionalJsonField($name, $value), $crate::cli::json::fields!($($($rest)*)?))
    };
}
pub(crate) use fields;

pub struct JsonObject<F>(pub F);

/// Fields of two objects in one, such as those of a report and of a library's type.
pub struct Joined<A, B>(pub A, pub B);

impl<A: Serialize, B: Serialize> Serialize for Joined<A, B> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Flat<'a, A, B> {
            #[serde(flatten)]
            first: &'a A,
            #[serde(flatten)]
            second: &'a B,
        }
        let (first, second) = (&self.0, &self.1);
        Flat { first, second }.serialize(to)
    }
}

pub struct JsonField<T>(pub &'static str, pub T);

pub struct OptionalJsonField<T>(pub &'static str, pub Option<T>);

/// Fields of a [`JsonObject`]: none, one, or a field and others.
pub trait JsonFields {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

impl JsonFields for () {
    fn put<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<T: Serialize> JsonFields for JsonField<T> {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(self.0, &self.1)
    }
}

impl<T: Serialize> JsonFields for OptionalJsonField<T> {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.1
            .as_ref()
            .map_or(Ok(()), |value| map.serialize_entry(self.0, value))
    }
}

impl<A: JsonFields, B: JsonFields> JsonFields for (A, B) {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.0.put(map)?;
        self.1.put(map)
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
        let outer =
            object! { "b": inner, "none"?: None::<u8>, "some"?: Some(2), "null": None::<u8> };
        let text = serde_json::to_string(&outer).unwrap();
        assert_eq!(text, r#"{"b":{"z":1,"a":[0.5]},"some":2,"null":null}"#);
        let joined = super::Joined(object! { "z": 1 }, object! { "a": 2 });
        assert_eq!(serde_json::to_string(&joined).unwrap(), r#"{"z":1,"a":2}"#);
    }
}
