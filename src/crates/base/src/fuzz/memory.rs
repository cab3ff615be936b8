//! Disk in memory. Files are sparse and shared between copies until one writes: a copy of a whole store costs next to
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, DiskFile};

const PAGE: usize = 4096;

/// Directory tree in memory.
#[derive(Debug, Default)]
pub struct Memory {
    files: Mutex<BTreeMap<PathBuf, File>>,
    dirs: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Debug, Clone, Default)]
struct File(Arc<Mutex<Content>>);

#[derive(Debug, Clone, Default)]
struct Content {
    len: u64,
    /// Pages by number; an absent page is all zeros.
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    /// Returns a copy; writes to one do not show in the other.
    pub fn copy(&self) -> Memory {
        let files = lock(&self.files);
        let copy = |(path, file): (&PathBuf, &File)| {
            let content = lock(&file.0).clone();
            (path.clone(), File(Arc::new(Mutex::new(content))))
        };
        Memory {
            files: Mutex::new(files.iter().map(copy).collect()),
            dirs: Mutex::new(lock(&self.dirs).clone()),
        }
    }

    /// Replaces the content of the file `path` by `bytes`.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut content = Content::default();
        content.write(bytes, 0);
        lock(&self.files).insert(path.into(), File(Arc::new(Mutex::new(content))));
    }

    /// Returns the paths of all files, sorted.
    pub fn paths(&self) -> Vec<PathBuf> {
        lock(&self.files).keys().cloned().collect()
    }

    fn find(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        match lock(&self.files).get(path) {
            Some(file) => Ok(Box::new(file.clone())),
            None => Err(ErrorKind::NotFound.into()),
        }
    }
}

impl Disk for Memory {
    fn open(&self, path: &Path, create: bool) -> io::Result<Box<dyn DiskFile>> {
        if create {
            lock(&self.files).entry(path.into()).or_default();
        }
        self.find(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        if lock(&self.files).contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.open(path, true)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.find(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if lock(&self.dirs).insert(path.into()) {
            Ok(())
        } else {
            Err(ErrorKind::AlreadyExists.into())
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let moved = |path: &Path| match path.strip_prefix(from) {
            Ok(rest) if rest.as_os_str().is_empty() => to.to_path_buf(),
            Ok(rest) => to.join(rest),
            Err(_) => path.to_path_buf(),
        };
        let (mut files, mut dirs) = (lock(&self.files), lock(&self.dirs));
        if !files.contains_key(from) && !dirs.contains(from) {
            return Err(ErrorKind::NotFound.into());
        }
        files.remove(to);
        *files = std::mem::take(&mut *files)
            .into_iter()
            .map(|(path, file)| (moved(&path), file))
            .collect();
        *dirs = dirs.iter().map(|path| moved(path)).collect();
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = lock(&self.files).remove(path);
        removed.map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        if !lock(&self.dirs).contains(path) {
            return Err(ErrorKind::NotFound.into());
        }
        let (files, dirs) = (lock(&self.files), lock(&self.dirs));
        let mut names: Vec<String> = (files.keys().chain(dirs.iter()))
            .filter(|inside| inside.parent() == Some(path))
            .filter_map(|inside| Some(inside.file_name()?.to_string_lossy().into_owned()))
            .collect();
        names.sort();
        Ok(names)
    }
}

impl Content {
    /// Calls `each` for the parts of `len` bytes from `at` on that lie in one page: page, range in it, range in the
    /// bytes.
    fn parts(at: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len {
            let place = at + done as u64;
            let inside = (place % PAGE as u64) as usize;
            let part = (PAGE - inside).min(len - done);
            each(place / PAGE as u64, inside, done..done + part);
            done += part;
        }
    }

    fn write(&mut self, data: &[u8], at: u64) {
        self.len = self.len.max(at + data.len() as u64);
        Content::parts(at, data.len(), |page, inside, part| {
            let page = self
                .pages
                .entry(page)
                .or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[inside..inside + part.len()].copy_from_slice(&data[part]);
        });
    }
}

impl DiskFile for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let content = lock(&self.0);
        let end = offset.checked_add(buf.len() as u64);
        if end.is_none_or(|end| end > content.len) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Content::parts(offset, buf.len(), |page, inside, part| {
            let len = part.len();
            match content.pages.get(&page) {
                Some(page) => buf[part].copy_from_slice(&page[inside..inside + len]),
                None => buf[part].fill(0),
            }
        });
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        // Like a file system: a file that grew without bound would hide a fault.
        if offset > 1 << 40 {
            return Err(ErrorKind::FileTooLarge.into());
        }
        lock(&self.0).write(data, offset);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(lock(&self.0).len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > 1 << 40 {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let mut content = lock(&self.0);
        if len < content.len {
            content.pages.split_off(&len.div_ceil(PAGE as u64));
            let last = content.pages.get_mut(&(len / PAGE as u64));
            if let Some(last) = last {
                Arc::make_mut(last)[(len % PAGE as u64) as usize..].fill(0);
            }
        }
        content.len = len;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}
