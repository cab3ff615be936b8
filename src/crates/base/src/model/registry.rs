//! Things with a name for users: tables of formats of inputs, of rankings, of lists; and values written as words.

use super::Error;

/// Defines an enum of the entries of a table, each a constant with a `name` and a description, `about`.
#[macro_export]
macro_rules! registry {
    ($(#[$attribute:meta])* $name:ident of $spec:ty, called $what:literal;
     $($(#[$doc:meta])* $item:ident is $entry:expr;)*) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $item,)*
        }

        impl $name {
            /// All entries, in the order of the table.
            pub const ALL: [$name; [$(stringify!($item)),*].len()] = [$($name::$item),*];

            fn spec(self) -> &'static $spec {
                match self {
                    $($name::$item => const { &$entry },)*
                }
            }

            /// Returns the name used on the command line.
            pub fn name(self) -> &'static str {
                self.spec().name
            }

            /// Returns a description in a few words.
            pub fn about(self) -> &'static str {
                self.spec().about
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::Error;

            fn from_str(name: &str) -> Result<$name, $crate::model::Error> {
                let known = $name::ALL.into_iter().find(|known| known.name() == name);
                known.ok_or_else(|| {
                    let names = $name::ALL.map($name::name).join(", ");
                    let what = $what;
                    $crate::model::Error::Usage(format!("no {what} {name:?}; there are: {names}"))
                })
            }
        }
    };
}

/// Defines an enum whose values are words for users, on the command line, in tables and in JSON.
#[macro_export]
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident { $($(#[$doc:meta])* $item:ident = $word:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $item,)*
        }

        impl $name {
            /// All values, in the order of their definition.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$item),*];

            /// Returns the word for the value.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$item => $word,)*
                }
            }

            /// Returns the value of a word; `None` if there is none.
            pub fn named(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|known| known.name() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::Error;

            fn from_str(text: &str) -> std::result::Result<$name, $crate::model::Error> {
                let words = $name::ALL.map($name::name);
                $name::named(text).ok_or_else(|| $crate::model::unknown_word(text, &words))
            }
        }
    };
}

/// Returns the error for a text that is not one of the words.
pub fn unknown_word(text: &str, words: &[&str]) -> Error {
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    Error::Usage(format!("{text:?}: {} or {last}", others.join(", ")))
}

/// Stores values of a type as their text, by `#[serde(try_from = "String", into = "String")]`.
#[macro_export]
macro_rules! stored_as_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = <$name as std::str::FromStr>::Err;

            fn try_from(text: String) -> std::result::Result<$name, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }
    };
}
