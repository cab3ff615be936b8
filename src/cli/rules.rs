//! Options that choose what is read from inputs, for every command that reads crawl records.

use cashrank_base::rules::{DropParams, FieldChoice, FieldNames, InputRules, Outlinks, Scope};

use super::common::{one_of, parsed};

/// Heading of these options in the help.
pub const INPUT: &str = "Input";

/// Rules for what is read from inputs.
#[derive(clap::Args)]
#[command(next_help_heading = INPUT)]
pub struct RulesArgs {
    /// Count only these pages, like domain:example.org; with ! in front: all but these [default: all].
    ///
    /// host:NAME, barehost:NAME (with and without www.), domain:NAME, prefix:HOST/FOLDERS or url:PATTERN, where * matches
    /// anything. May be repeated.
    #[arg(long, value_name = "PAGES", value_parser = parsed::<Scope>)]
    scope: Vec<Scope>,
    /// Remove these parameters from URLs, like tracking,session,utm_* [default: none].
    ///
    /// A `*` at the end of a name stands for any ending; `tracking` and `session` stand for lists of common names.
    #[arg(long, value_name = "NAMES", value_parser = parsed::<DropParams>)]
    drop_params: Vec<DropParams>,
    /// The name of a field in JSON lines, where it is another, like url=response_url.
    ///
    /// Fields of a record: url, links, fetched_at, status, redirect, digest, requested_url, final_url, base, method,
    /// links_nofollow, links_rel, links_weight, revisit; of a link that is an object: link.url, link.rel, link.nofollow,
    /// link.weight. Repeat the option, or separate several by commas.
    #[arg(long = "field", value_name = "FIELD=NAME", value_delimiter = ',', value_parser = parsed::<FieldChoice>)]
    fields: Vec<FieldChoice>,
    /// Take the links of archived pages from their HTML, or from the crawler's own records of them [default: html].
    ///
    /// Those are the `outlink` lines in the metadata records of a WARC file.
    #[arg(long, value_name = "WHENCE", value_parser = one_of(["html", "metadata"], parsed::<Outlinks>))]
    outlinks: Option<Outlinks>,
}

impl RulesArgs {
    /// Returns the first of these options that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            (self.outlinks.is_some(), "--outlinks"),
            (!self.fields.is_empty(), "--field"),
            (!self.drop_params.is_empty(), "--drop-params"),
            (!self.scope.is_empty(), "--scope"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// Returns the given rules; those not given are the store's.
    pub fn resolve(&self, store: Option<&InputRules>) -> anyhow::Result<InputRules> {
        let mut rules = store.cloned().unwrap_or_default();
        rules.outlinks = self.outlinks.unwrap_or(rules.outlinks);
        if !self.fields.is_empty() {
            rules.fields = FieldNames::of(self.fields.clone())?;
        }
        if !self.drop_params.is_empty() {
            rules.drop_params = DropParams::default();
            let given = self.drop_params.iter().cloned();
            given.for_each(|names| rules.drop_params.add(names));
        }
        if !self.scope.is_empty() {
            rules.scope = Scope::default();
            self.scope
                .iter()
                .cloned()
                .for_each(|pages| rules.scope.add(pages));
        }
        Ok(rules)
    }
}
