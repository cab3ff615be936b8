//! Parts of the program that a build may lack, by their features in `Cargo.toml`.

/// Part of the program that a build may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// Name in `Cargo.toml`. The feature of an export has the name of its format.
    pub name: &'static str,
    what: &'static str,
    is_built: bool,
}

/// All parts that a build may lack.
pub const FEATURES: [Feature; 6] = [
    Feature::new("arrow", "Arrow", cfg!(feature = "arrow")),
    Feature::new("frontier", "URLFrontier", cfg!(feature = "frontier")),
    Feature::new("man", "man pages", cfg!(feature = "man")),
    Feature::new("parquet", "Parquet", cfg!(feature = "parquet")),
    Feature::new("serve", "service", cfg!(feature = "serve")),
    Feature::new("sqlite", "SQLite", cfg!(feature = "sqlite")),
];

impl Feature {
    const fn new(name: &'static str, what: &'static str, is_built: bool) -> Feature {
        Feature {
            name,
            what,
            is_built,
        }
    }

    /// Fails with a message for users of the command if the feature of this name is missing from the build. Other names
    /// pass.
    pub fn require(name: &str) -> Result<(), String> {
        let lacks = |feature: &Feature| feature.name == name && !feature.is_built;
        match FEATURES.into_iter().find(lacks) {
            Some(Feature { name, what, .. }) => Err(format!(
                "this build has no {what}; cargo install --features {name}"
            )),
            None => Ok(()),
        }
    }

    /// Returns the library's error for `what`, which needs a feature that this build lacks.
    #[cfg(not(all(feature = "arrow", feature = "parquet", feature = "sqlite")))]
    pub fn refusal(what: impl std::fmt::Display, name: &str) -> super::Error {
        super::Error::Unsupported(format!(
            "{what}: this build of cashrank lacks the feature {name}"
        ))
    }
}
