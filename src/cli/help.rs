//! Help in two steps: `-h` shows what everybody needs, `--help` everything. An option of many commands is explained once.

use clap::{Arg, Command};

/// Options of many commands; `cashrank --help` explains them.
const COMMON: &str = "memory threads json quiet force";

/// Options for what is read from inputs; `cashrank ingest --help` explains them.
const READING: &str = "format field scope drop-params outlinks follow self-links strict \
    accept-unverified limit-line limit-url limit-links limit-held limit-expansion limit-zstd-window";

/// Commands other than `ingest` that read inputs.
const READERS: &str = "convert inspect compute";

/// Options that `-h` shows, for commands with many options.
const FIRST: [(&str, &str); 4] = [
    (
        "ingest",
        "store memory format scope drop-params field settle follow damping expire keep-links \
         snapshot-every keep-snapshots top json quiet",
    ),
    (
        "next",
        "store count strategy refetch budget per-host scope exclude seeds to output",
    ),
    (
        "export",
        "store snapshot to output sort level measure scope since links records",
    ),
    ("local", "store domain count output"),
];

/// Commands listed under "Every day"; all others are listed under "Special".
const EVERY_DAY: &str = "ingest next top rank history links stat export serve";

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

pub fn in_two_steps(command: Command) -> Command {
    let command = command.mut_subcommands(of_command);
    let (every_day, special): (Vec<&Command>, Vec<&Command>) = command
        .get_subcommands()
        .filter(|one| !one.is_hide_set())
        .partition(|one| has(EVERY_DAY, one.get_name()));
    let list = |commands: Vec<&Command>| -> String {
        let line = |one: &Command| {
            let about = one.get_about().map(ToString::to_string);
            format!("\n  {:<12} {}", one.get_name(), about.unwrap_or_default())
        };
        commands.into_iter().map(line).collect()
    };
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\nEvery day:{}\n\nSpecial:{}\n\nOptions:\n{{options}}{{after-help}}",
        list(every_day),
        list(special)
    );
    command.help_template(template)
}

/// Hides the options that are explained elsewhere, and adds a reference to that place.
fn of_command(command: Command) -> Command {
    let name = command.get_name().to_owned();
    let first = FIRST.iter().find(|(of, _)| *of == name);
    let lists = [(COMMON, "cashrank"), (READING, "cashrank ingest")];
    let lists = match &*name {
        "ingest" => &[],
        reader if has(READERS, reader) => &lists[..],
        _ => &lists[..1],
    };
    let notes = command.get_after_help().map(ToString::to_string);
    let mut notes = notes.unwrap_or_default();
    for (options, explained) in lists {
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let named = shown.filter_map(Arg::get_long);
        let named = named.filter(|option| has(options, option));
        let named: Vec<String> = named.map(|option| format!("--{option}")).collect();
        if !named.is_empty() {
            let named = named.join(", ");
            notes.push_str(&format!("\n\nAlso {named}: see `{explained} --help`."));
        }
    }
    command
        .after_help(notes.trim_start().to_owned())
        .mut_args(|arg| {
            let Some(option) = arg.get_long().map(str::to_owned) else {
                return arg;
            };
            let is_first = first.is_none_or(|(_, first)| has(first, &option));
            let is_elsewhere = lists.iter().any(|(options, _)| has(options, &option));
            arg.hide_short_help(!is_first).hide(is_elsewhere)
        })
}
