//! Target of results: how every command writes to a file that its user named.
//!
//! A regular file, or a new one, is written under an unused name beside it (`NAME.unfinished`, `NAME.2.unfinished` and so
//! on), and renamed when it is complete. A symbolic link stays, and the file that it leads to is written in this way.
//! Devices, FIFOs and descriptors (`/dev/fd/3`) are written into directly.
//!
//! A file that is not empty is replaced only with `--force`, because it may be the crawl itself; so is none that appears
//! while the result is written. Files of a store and inputs of the command are never replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cashrank::Error;
use cashrank_store::store::{part_of, unfinished};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::common::{Exit, print_json, say};

/// Maximum number of symbolic links that are followed, as in the kernel.
const LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputTarget {
    Standard,
    /// Regular file, with links resolved, and whether it is replaced if it exists and is not empty.
    File(PathBuf, bool),
    /// Anything other than a regular file.
    Stream(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Yes,
    /// Syncs the file before it is renamed, and its directory afterwards.
    Durably,
    /// Removes the file. The part written to a stream cannot be removed.
    No,
}

#[derive(clap::Args)]
pub struct OutputArgs {
    /// The file, which appears once it is complete; `-` or none: standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists, unless the command reads it.
    #[arg(long, requires = "output")]
    force: bool,
}

/// Options of commands that write a result, with a summary for programs.
#[derive(clap::Args)]
pub struct SummedOutputArgs {
    #[command(flatten)]
    pub file: OutputArgs,
    /// Print the summary as one line of JSON on standard output; the result goes to the file.
    #[arg(long)]
    pub json: bool,
}

impl OutputArgs {
    pub fn open(&self) -> anyhow::Result<OutputTarget> {
        OutputTarget::open(self.output.as_deref(), self.force)
    }

    pub fn name(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new("-"))
    }
}

impl SummedOutputArgs {
    pub fn is_standard(&self) -> bool {
        self.file.output.is_none() && !self.file.force
    }

    /// Opens the target like [`OutputArgs::open`]; also refuses to mix result and summary on standard output.
    pub fn open(&self) -> anyhow::Result<OutputTarget> {
        let output = self.file.open()?;
        anyhow::ensure!(
            !self.json || output != OutputTarget::Standard,
            "--json and the result would both go to standard output: name a file with -o"
        );
        Ok(output)
    }

    /// Prints the summary for programs, or a line for people unless the result is on standard output.
    pub fn report(
        &self,
        output: &OutputTarget,
        said: &str,
        summary: serde_json::Value,
    ) -> anyhow::Result<Exit> {
        if self.json {
            return print_json(&summary);
        }
        if *output != OutputTarget::Standard {
            say!("{}: {said}", self.file.name().display());
        }
        Ok(Exit::Done)
    }
}

impl OutputTarget {
    /// Resolves a target like [`OutputTarget::of`]. Refuses a file that is not empty; with `force`, one of a store.
    pub fn open(path: Option<&Path>, force: bool) -> anyhow::Result<OutputTarget> {
        let mut output = OutputTarget::of(path)?;
        if let OutputTarget::File(file, is_replaced) = &mut output {
            let path = path.unwrap_or(file).display();
            if force && is_of_a_store(file) {
                anyhow::bail!("{path}: is a file of a store; name another");
            }
            if !force && holds_something(file) {
                anyhow::bail!("{path}: already exists; --force replaces it");
            }
            *is_replaced = force;
        }
        Ok(output)
    }

    /// Refuses the target if it is the same file as one of the inputs, whatever its name: it would replace the input.
    pub fn must_spare(
        &self,
        inputs: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> anyhow::Result<()> {
        let OutputTarget::File(file, _) = self else {
            return Ok(());
        };
        let id = |path: &Path| fs::metadata(path).ok().map(|of| (of.dev(), of.ino()));
        for input in inputs.into_iter().filter(|_| file.exists()) {
            let input = input.as_ref();
            anyhow::ensure!(
                is_standard(input) || id(input) != id(file),
                "{}: the command reads it (from {}), and the result would replace it: write to another file",
                file.display(),
                input.display()
            );
        }
        Ok(())
    }

    /// Resolves `path`, following symbolic links; `None` is standard output.
    pub fn of(path: Option<&Path>) -> Result<OutputTarget, Error> {
        let Some(path) = path.filter(|path| !is_standard(path)) else {
            return Ok(OutputTarget::Standard);
        };
        let mut at = path.to_owned();
        for _ in 0..=LINKS {
            if is_descriptor(&at) {
                return Ok(OutputTarget::Stream(at));
            }
            match fs::symlink_metadata(&at) {
                Ok(found) if found.is_symlink() => {
                    let to = fs::read_link(&at).map_err(Error::io(&at, "follow"))?;
                    at = at.parent().unwrap_or(Path::new("")).join(to);
                }
                Ok(found) if found.is_dir() => {
                    return Err(Error::io(&at, "write")(io::ErrorKind::IsADirectory.into()));
                }
                Ok(found) if !found.is_file() => return Ok(OutputTarget::Stream(at)),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(&at, "look at")(error));
                }
                _ => return Ok(OutputTarget::File(at, true)),
            }
        }
        let source = io::Error::other(format!("it leads through more than {LINKS} symbolic links"));
        Err(Error::io(path, "follow")(source))
    }

    pub fn must_show(&self, format: &str, is_text: bool) -> anyhow::Result<()> {
        anyhow::ensure!(
            is_text || *self != OutputTarget::Standard || !io::stdout().is_terminal(),
            "{format} is not written to a terminal: name a file with -o, or choose --to tsv"
        );
        Ok(())
    }

    pub fn put<T>(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.write(|out| Ok((write(out)?, Keep::Yes)))
    }

    /// Creates a folder of results, which must not exist yet: fills a temporary folder, and renames it when complete.
    pub fn put_folder<T>(
        path: &Path,
        fill: impl FnOnce(&Path) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (temporary, ()) = unfinished(path, |temporary| fs::create_dir(temporary))?;
        let filled = fill(&temporary).and_then(|value| {
            fs::rename(&temporary, path).map_err(Error::io(path, "rename"))?;
            Ok(value)
        });
        if filled.is_err() {
            let _ = fs::remove_dir_all(&temporary);
        }
        filled
    }

    /// Runs `write` on the target; its result says whether a regular file is kept.
    pub fn write<T>(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<(T, Keep)>,
    ) -> anyhow::Result<T> {
        match self {
            OutputTarget::Standard => {
                let mut out = BufWriter::new(io::stdout());
                let (value, _) = write(&mut out)?;
                out.flush()?;
                Ok(value)
            }
            OutputTarget::Stream(path) => {
                // Appends, because the descriptor may be that of a regular file, whose content must stay. Opening a FIFO
                // waits for its reader.
                let file = OpenOptions::new().append(true).open(path);
                let mut out = BufWriter::new(file.map_err(Error::io(path, "open"))?);
                let (value, _) = write(&mut out)?;
                out.flush().map_err(Error::io(path, "write"))?;
                Ok(value)
            }
            OutputTarget::File(path, is_replaced) => write_file(path, *is_replaced, write),
        }
    }
}

pub fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn holds_something(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// Returns whether removing this file would damage a store.
fn is_of_a_store(path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1).take(2);
    part_of(path).is_some() && folders.any(|folder| folder.join("identity.json").is_file())
}

fn is_standard(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|name| path.as_os_str() == *name)
}

fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

/// Writes a regular file through a temporary file, with the permissions of the file that it replaces.
fn write_file<T>(
    path: &Path,
    is_replaced: bool,
    write: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<(T, Keep)>,
) -> anyhow::Result<T> {
    let (temporary, file) = unfinished(path, |temporary| File::create_new(temporary))?;
    let fill = || -> anyhow::Result<(T, Keep)> {
        if let Ok(found) = fs::metadata(path) {
            file.set_permissions(found.permissions())
                .map_err(Error::io(&temporary, "set the permissions of"))?;
        }
        let mut out = BufWriter::new(file);
        let (value, keep) = write(&mut out)?;
        if keep != Keep::No {
            out.flush().map_err(Error::io(path, "write"))?;
        }
        if keep == Keep::Durably {
            // Without this, a power failure could leave an empty file under the name.
            out.get_ref().sync_all().map_err(Error::io(path, "sync"))?;
        }
        Ok((value, keep))
    };
    let (value, keep) = fill().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })?;
    if keep == Keep::No {
        fs::remove_file(&temporary).map_err(Error::io(&temporary, "remove"))?;
        return Ok(value);
    }
    match give_name(&temporary, path, is_replaced) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => anyhow::bail!(
            "{}: appeared while the result was written, and stays; the result is in {}",
            path.display(),
            temporary.display()
        ),
        Err(error) => {
            let _ = fs::remove_file(&temporary);
            return Err(Error::io(path, "rename")(error).into());
        }
        Ok(()) => {}
    }
    if keep == Keep::Durably {
        File::open(folder_of(path))
            .and_then(|dir| dir.sync_all())
            .map_err(Error::io(path, "sync the directory of"))?;
    }
    Ok(value)
}

/// Renames a complete file. Fails with [`io::ErrorKind::AlreadyExists`] if a file that is not empty must stay.
fn give_name(temporary: &Path, path: &Path, is_replaced: bool) -> io::Result<()> {
    if is_replaced {
        return fs::rename(temporary, path);
    }
    let renamed = renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE);
    let exists = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
    let named = match renamed.map_err(io::Error::from) {
        // Some file systems cannot rename without replacing.
        Err(error) if !exists(&error) => {
            fs::hard_link(temporary, path).and_then(|()| fs::remove_file(temporary))
        }
        named => named,
    };
    match named {
        Err(error) if exists(&error) && !holds_something(path) => fs::rename(temporary, path),
        named => named,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn put(path: &Path, text: &str) {
        let output = OutputTarget::of(Some(path)).unwrap();
        output
            .put(|out| Ok(out.write_all(text.as_bytes())?))
            .unwrap();
    }

    #[test]
    fn links_stay_and_lead_to_the_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir(path("deep")).unwrap();
        fs::write(path("deep/file"), "old").unwrap();
        fs::set_permissions(path("deep/file"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("deep/file", path("link")).unwrap();
        symlink("link", path("twice")).unwrap();
        symlink("deep/none", path("dangling")).unwrap();
        put(&path("twice"), "new");
        put(&path("dangling"), "made");
        assert_eq!(fs::read(path("deep/file")).unwrap(), b"new");
        assert_eq!(fs::read(path("deep/none")).unwrap(), b"made");
        for link in ["link", "twice", "dangling"] {
            assert!(fs::symlink_metadata(path(link)).unwrap().is_symlink());
        }
        let mode = fs::metadata(path("deep/file")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o640);
        assert_eq!(
            fs::read_dir(path("deep")).unwrap().count(),
            2,
            "no leftover"
        );
        symlink("round", path("round")).unwrap();
        assert!(OutputTarget::of(Some(&path("round"))).is_err());
        assert!(OutputTarget::of(Some(&path("deep"))).is_err());
    }

    #[test]
    fn what_fails_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "old").unwrap();
        let failed = OutputTarget::of(Some(&path)).unwrap();
        let failed = failed.put(|out| -> anyhow::Result<()> {
            out.write_all(b"half")?;
            anyhow::bail!("no more")
        });
        assert!(failed.is_err());
        let dropped = OutputTarget::of(Some(&path)).unwrap().write(|out| {
            out.write_all(b"half")?;
            Ok(((), Keep::No))
        });
        assert!(dropped.is_ok());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn standard_output_has_its_names() {
        for name in ["-", "/dev/stdout", "/dev/fd/1"] {
            assert_eq!(
                OutputTarget::of(Some(Path::new(name))).unwrap(),
                OutputTarget::Standard
            );
        }
        let null = Path::new("/dev/null");
        let found = OutputTarget::of(Some(null)).unwrap();
        assert_eq!(found, OutputTarget::Stream(null.into()));
    }

    /// Regression: `convert a.jsonl -o a.jsonl --force` replaced the crawl by its own archive.
    #[test]
    fn what_is_read_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("crawl"), "a record").unwrap();
        fs::write(path("other"), "a record").unwrap();
        symlink("crawl", path("link")).unwrap();
        fs::hard_link(path("crawl"), path("hard")).unwrap();
        for name in ["crawl", "link", "hard"] {
            let output = OutputTarget::open(Some(&path(name)), true).unwrap();
            for input in ["crawl", "link", "hard"] {
                let refused = output.must_spare([path("none"), path(input)]);
                assert!(refused.unwrap_err().to_string().contains("another file"));
            }
            output.must_spare([path("other"), "-".into()]).unwrap();
        }
        let new = OutputTarget::open(Some(&path("new")), true).unwrap();
        new.must_spare([path("new")]).unwrap();
    }

    #[test]
    fn files_with_content_are_replaced_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("empty"), "").unwrap();
        fs::write(path("file"), "old").unwrap();
        symlink("file", path("link")).unwrap();
        symlink("none", path("dangling")).unwrap();
        for free in ["empty", "none", "dangling", "/dev/null"] {
            OutputTarget::open(Some(&path(free)), false).unwrap();
        }
        OutputTarget::open(None, false).unwrap();
        for kept in ["file", "link"] {
            let refused = OutputTarget::open(Some(&path(kept)), false)
                .unwrap_err()
                .to_string();
            assert!(
                refused.contains(kept) && refused.contains("--force"),
                "{refused}"
            );
            OutputTarget::open(Some(&path(kept)), true).unwrap();
        }
    }
}
