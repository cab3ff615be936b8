//! `cashrank man`: man pages, generated from the help.

use std::path::PathBuf;

use cashrank::Error;
use clap_mangen::Man;

use super::common::Exit;
use super::output::OutputTarget;

/// Write man pages to a folder: cashrank.1, and one for each command.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  cashrank man ~/.local/share/man/man1 && man cashrank-ingest")]
pub struct ManArgs {
    /// The folder; created if it does not exist.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl ManArgs {
    pub fn run(self, command: clap::Command) -> anyhow::Result<Exit> {
        std::fs::create_dir_all(&self.dir).map_err(Error::io(&self.dir, "create"))?;
        let mut command = command.disable_help_subcommand(true);
        command.build();
        self.page(&command, "cashrank")?;
        for one in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            self.page(one, &format!("cashrank-{}", one.get_name()))?;
        }
        Ok(Exit::Done)
    }

    fn page(&self, command: &clap::Command, name: &str) -> anyhow::Result<()> {
        // clap requires a name that lives as long as the process.
        let name: &'static str = String::leak(name.to_owned());
        let man = Man::new(command.clone().name(name).display_name(name));
        let path = self.dir.join(format!("{name}.1"));
        OutputTarget::of(Some(&path))?.put(|mut out| Ok(man.render(&mut out)?))
    }
}
