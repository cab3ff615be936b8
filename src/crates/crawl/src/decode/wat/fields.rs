//! Fields of extractors' JSON, which varies more than derived types allow: names in any case, `null` and numbers for
//! text, repeated headers as lists, a single object without its list.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Reads a JSON object only: serde's derived structs would also accept an array.
#[derive(Default)]
pub(super) struct ObjectOnly<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnly<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = ObjectOnly<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(ObjectOnly)
    }
}

/// Values of named fields; `None` if absent or `null`.
pub(super) type Values<'a, const N: usize> = [Option<Cow<'a, str>>; N];

/// Reads the fields of an object that have these names, in any case, and skips all others.
#[derive(Clone, Copy)]
pub(super) struct Pick<const N: usize>(pub [&'static str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Pick<N> {
    type Value = Option<Values<'de, N>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_option(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Pick<N> {
    type Value = Option<Values<'de, N>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.0.join("`, `"))
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [const { None }; N];
        while let Some(known) = map.next_key_seed(Name(&self.0))? {
            match known {
                Some(at) if values[at].is_none() => {
                    let FirstValue(value) = map.next_value()?;
                    values[at] = value;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(values))
    }
}

/// Finds a field's name among these.
pub(super) struct Name<'n>(pub &'n [&'static str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self
            .0
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name)))
    }
}

/// Value written as a text, a number, or, for a repeated header, a list whose first element counts.
pub(super) struct FirstValue<'a>(pub Option<Cow<'a, str>>);

impl<'de> Deserialize<'de> for FirstValue<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(FirstVisitor)
    }
}

struct FirstVisitor;

impl<'de> Visitor<'de> for FirstVisitor {
    type Value = FirstValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, or a list of them")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(FirstValue(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(FirstValue(Some(Cow::Owned(text.to_owned()))))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(FirstValue(Some(Cow::Owned(number.to_string()))))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(FirstValue(Some(Cow::Owned(number.to_string()))))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(FirstValue(Some(Cow::Owned(number.to_string()))))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(FirstValue(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let FirstValue(first) = seq.next_element()?.unwrap_or(FirstValue(None));
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FirstValue(first))
    }
}

/// Reads the fields of an object that have these names, in any case, and passes on each value with its name's index:
/// all elements of a list, and all occurrences of a repeated name.
pub(super) struct NamedFields<const N: usize, F>(pub [&'static str; N], pub F);

impl<'de, const N: usize, F: FnMut(usize, Cow<'de, str>)> Visitor<'de> for NamedFields<N, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.0.join("`, `"))
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(known) = map.next_key_seed(Name(&self.0))? {
            match known {
                Some(at) => {
                    let Texts(values) = map.next_value()?;
                    values.into_iter().for_each(|value| (self.1)(at, value));
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// All non-null values of a text, a number, or a list of them.
struct Texts<'a>(Vec<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Texts<'de> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl TextsVisitor {
    fn one<'a, E>(first: Result<FirstValue<'a>, E>) -> Result<Texts<'a>, E> {
        first.map(|FirstValue(text)| Texts(text.into_iter().collect()))
    }
}

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        FirstVisitor.expecting(f)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Self::one(FirstVisitor.visit_borrowed_str(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Self::one(FirstVisitor.visit_str(text))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Self::one(FirstVisitor.visit_i64(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Self::one(FirstVisitor.visit_u64(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Self::one(FirstVisitor.visit_f64(number))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Texts(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(FirstValue(text)) = seq.next_element()? {
            texts.extend(text);
        }
        Ok(Texts(texts))
    }
}

/// Reads a list of objects, or a single one without its list, and passes on the picked fields of each.
pub(super) struct Each<const N: usize, F>(pub Pick<N>, pub F);

impl<'de, const N: usize, F: FnMut(Values<'de, N>)> DeserializeSeed<'de> for Each<N, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, const N: usize, F: FnMut(Values<'de, N>)> Visitor<'de> for Each<N, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<(), A::Error> {
        if let Some(object) = self.0.visit_map(map)? {
            (self.1)(object);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while let Some(object) = seq.next_element_seed(self.0)? {
            if let Some(object) = object {
                (self.1)(object);
            }
        }
        Ok(())
    }
}
