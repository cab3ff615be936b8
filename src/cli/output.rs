//! Where results go: the one way in which every command writes to a file that its user named.
//!
//! | what is under the name | what is done |
//! |---|---|
//! | nothing, or a regular file | it is written aside, under a name that was free (`NAME.unfinished`, or `NAME.2.unfinished` and so on), and renamed when whole, so that readers find the old file or the new one |
//! | a symbolic link | the same to the file it leads to, which is made if there is none; the link stays |
//! | anything else: a device, a FIFO, a descriptor (`/dev/fd/3`) | it is written into, straight |
//!
//! `-` and `/dev/stdout` are standard output. A regular file that holds something is replaced only with `--force`: it may be
//! the crawl itself. So is one that appears while the result is written, which then stays aside. The files of a store, and
//! those that the command reads, are not replaced at all. What no command names but for its own use (`ingest --ack`, the
//! pages of `man`) is replaced without.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cashrank::Error;
use cashrank_store::store::{part_of, unfinished};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Links followed from one to the next: as many as the system follows.
const LINKS: usize = 40;

/// Where a result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputTarget {
    /// Standard output.
    Standard,
    /// A regular file, links resolved; it need not exist.
    File(PathBuf, Existing),
    /// Something that is no regular file, and takes what is written.
    Stream(PathBuf),
}

/// What becomes of a file that holds something and has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is replaced.
    Replaced,
    /// It stays.
    Stays,
}

/// Whether a file is kept once it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It gets its name.
    Yes,
    /// Names the finished file, which is on the disk before; its name is afterwards.
    Durably,
    /// It is removed. What a stream took is not taken back.
    No,
}

/// `-o FILE` of commands whose result is data: where it goes, and whether what is there may go.
#[derive(clap::Args)]
pub struct OutputArgs {
    /// The file; `-` or none: standard output.
    ///
    /// It appears under this name once it is complete.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists, unless the command reads it.
    #[arg(long, requires = "output")]
    force: bool,
}

/// Writes the output, with a summary for programs.
#[derive(clap::Args)]
pub struct SummedOutputArgs {
    #[command(flatten)]
    pub file: OutputArgs,
    /// Print the summary as one line of JSON on standard output; the result goes to the file.
    #[arg(long)]
    pub json: bool,
}

impl OutputArgs {
    /// Where the result goes; refused if it would replace something unasked.
    pub fn open(&self) -> anyhow::Result<OutputTarget> {
        OutputTarget::open(self.output.as_deref(), self.force)
    }

    /// Its name, as messages have it.
    pub fn name(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new("-"))
    }
}

impl SummedOutputArgs {
    /// Whether no file was named, nor anything said of one.
    pub fn is_standard(&self) -> bool {
        self.file.output.is_none() && !self.file.force
    }

    /// As [`OutputArgs::open`]; refused, too, if result and summary would run together.
    pub fn open(&self) -> anyhow::Result<OutputTarget> {
        let output = self.file.open()?;
        anyhow::ensure!(
            !self.json || output != OutputTarget::Standard,
            "--json and the result would both go to standard output: name a file with -o"
        );
        Ok(output)
    }
}

impl OutputTarget {
    /// As [`OutputTarget::of`]; refused if there is a file already, and not all of `force` or nothing to lose.
    pub fn open(path: Option<&Path>, force: bool) -> anyhow::Result<OutputTarget> {
        let mut output = OutputTarget::of(path)?;
        if let OutputTarget::File(file, existing) = &mut output {
            let path = path.unwrap_or(file).display();
            if force && is_of_a_store(file) {
                anyhow::bail!("{path}: is a file of a store; name another");
            }
            if !force {
                if holds_something(file) {
                    anyhow::bail!("{path}: already exists; --force replaces it");
                }
                *existing = Existing::Stays;
            }
        }
        Ok(output)
    }

    /// Refused if it is the same file as one of these, under whatever name: what is read would be gone.
    pub fn must_spare(
        &self,
        inputs: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> anyhow::Result<()> {
        let OutputTarget::File(file, _) = self else {
            return Ok(());
        };
        let Ok(found) = fs::metadata(file) else {
            return Ok(());
        };
        for input in inputs {
            let input = input.as_ref();
            let is_same =
                |read: fs::Metadata| (read.dev(), read.ino()) == (found.dev(), found.ino());
            anyhow::ensure!(
                is_standard(input) || !fs::metadata(input).is_ok_and(is_same),
                "{}: the command reads it (from {}), and the result would replace it: write to another file",
                file.display(),
                input.display()
            );
        }
        Ok(())
    }

    /// The file at `path`; `None`: standard output.
    pub fn of(path: Option<&Path>) -> Result<OutputTarget, Error> {
        let Some(path) = path.filter(|path| !is_standard(path)) else {
            return Ok(OutputTarget::Standard);
        };
        if is_descriptor(path) {
            return Ok(OutputTarget::Stream(path.into()));
        }
        let mut at = path.to_owned();
        for _ in 0..LINKS {
            match fs::symlink_metadata(&at) {
                Ok(found) if found.is_symlink() => {
                    let to = fs::read_link(&at).map_err(failed(&at, "follow"))?;
                    at = at.parent().unwrap_or(Path::new("")).join(to);
                    if is_descriptor(&at) {
                        return Ok(OutputTarget::Stream(at));
                    }
                }
                Ok(found) if found.is_file() => {
                    return Ok(OutputTarget::File(at, Existing::Replaced));
                }
                Ok(found) if found.is_dir() => {
                    let source = io::Error::from(io::ErrorKind::IsADirectory);
                    return Err(failed(&at, "write")(source));
                }
                Ok(_) => return Ok(OutputTarget::Stream(at)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(OutputTarget::File(at, Existing::Replaced));
                }
                Err(error) => return Err(failed(&at, "look at")(error)),
            }
        }
        let source = io::Error::other(format!("it leads through more than {LINKS} symbolic links"));
        Err(failed(path, "follow")(source))
    }

    /// Returns whether bytes would go to a screen.
    pub fn is_terminal(&self) -> bool {
        match self {
            OutputTarget::Standard => io::stdout().is_terminal(),
            OutputTarget::File(..) => false,
            OutputTarget::Stream(path) => {
                // To open a FIFO would be to wait for its writer.
                let is_device = fs::metadata(path).is_ok_and(|found| is_character_device(&found));
                is_device && File::open(path).is_ok_and(|file| file.is_terminal())
            }
        }
    }

    /// Refuses to write what is no text to a screen.
    pub fn must_show(&self, format: &str, is_text: bool) -> anyhow::Result<()> {
        if !is_text && self.is_terminal() {
            anyhow::bail!(
                "{format} is not written to a terminal: name a file with -o, or choose --to tsv"
            );
        }
        Ok(())
    }

    /// Writes the whole result.
    pub fn put(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.write(|out| Ok((write(out)?, Keep::Yes)))
    }

    /// Makes a folder of results, which must not be there yet: filled aside, and renamed when whole.
    pub fn put_folder<T>(
        path: &Path,
        fill: impl FnOnce(&Path) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (aside, ()) = unfinished(path, |aside| fs::create_dir(aside))?;
        let filled = fill(&aside).and_then(|value| {
            fs::rename(&aside, path).map_err(failed(path, "rename"))?;
            Ok(value)
        });
        if filled.is_err() {
            let _ = fs::remove_dir_all(&aside);
        }
        filled
    }

    /// Runs `write` on it; what it returns says what becomes of a regular file.
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
                let file = open_stream(path).map_err(failed(path, "open"))?;
                let mut out = BufWriter::new(file);
                let (value, _) = write(&mut out)?;
                out.flush().map_err(failed(path, "write"))?;
                Ok(value)
            }
            OutputTarget::File(path, existing) => aside(path, *existing, write),
        }
    }
}

/// Opens what is no regular file for writing into it; a FIFO waits for its reader.
fn open_stream(path: &Path) -> io::Result<File> {
    // A descriptor may be of a regular file: what is there stays.
    OpenOptions::new().append(true).open(path)
}

fn holds_something(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// Returns whether a store is damaged without this file.
fn is_of_a_store(path: &Path) -> bool {
    let mut folders = path.ancestors().skip(1).take(2);
    part_of(path).is_some() && folders.any(|folder| folder.join("identity.json").is_file())
}

fn is_standard(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(|name| path.as_os_str() == *name)
}

/// Returns whether the path names an open file of the process, not a file.
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn is_character_device(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_char_device()
}

fn failed(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io {
        path,
        action,
        source,
    }
}

/// Writes a regular file beside its name, with the permissions of the one that it replaces.
fn aside<T>(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<(T, Keep)>,
) -> anyhow::Result<T> {
    let create = |aside: &Path| File::create_new(aside);
    let (aside, file) = unfinished(path, create)?;
    let (value, keep) = fill(&aside, file, path, write).inspect_err(|_| {
        let _ = fs::remove_file(&aside);
    })?;
    if keep == Keep::No {
        fs::remove_file(&aside).map_err(failed(&aside, "remove"))?;
        return Ok(value);
    }
    match give_name(&aside, path, existing) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => anyhow::bail!(
            "{}: appeared while the result was written, and stays; the result is in {}",
            path.display(),
            aside.display()
        ),
        Err(error) => {
            let _ = fs::remove_file(&aside);
            return Err(failed(path, "rename")(error).into());
        }
        Ok(()) => {}
    }
    if keep == Keep::Durably {
        sync_dir_of(path).map_err(failed(path, "sync the directory of"))?;
    }
    Ok(value)
}

/// Renames a whole file. One that holds something, has the name already and is to stay is the error
/// [`io::ErrorKind::AlreadyExists`].
fn give_name(aside: &Path, path: &Path, existing: Existing) -> io::Result<()> {
    if existing == Existing::Replaced {
        return fs::rename(aside, path);
    }
    let renamed = renameat_with(CWD, aside, CWD, path, RenameFlags::NOREPLACE);
    let named = match renamed.map_err(io::Error::from) {
        // Not all file systems can do that.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            fs::hard_link(aside, path).and_then(|()| fs::remove_file(aside))
        }
        named => named,
    };
    match named {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !holds_something(path) => {
            fs::rename(aside, path)
        }
        named => named,
    }
}

fn fill<T>(
    aside: &Path,
    file: File,
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> anyhow::Result<(T, Keep)>,
) -> anyhow::Result<(T, Keep)> {
    if let Ok(found) = fs::metadata(path) {
        let set = file.set_permissions(found.permissions());
        set.map_err(failed(aside, "set the permissions of"))?;
    }
    let mut out = BufWriter::new(file);
    let (value, keep) = write(&mut out)?;
    if keep == Keep::No {
        return Ok((value, keep));
    }
    out.flush().map_err(failed(path, "write"))?;
    if keep == Keep::Durably {
        // Else a power cut may leave an empty file under the name.
        let synced = out.get_ref().sync_all();
        synced.map_err(failed(path, "sync"))?;
    }
    Ok((value, keep))
}

/// Makes a new name durable.
fn sync_dir_of(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
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
        let failed = OutputTarget::of(Some(&path)).unwrap().put(|out| {
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
        assert!(!found.is_terminal());
    }

    /// `convert a.jsonl -o a.jsonl --force` left an archive under the name of the crawl, and no crawl.
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
    fn what_holds_something_is_replaced_only_when_asked() {
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
