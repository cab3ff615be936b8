//! The directories of a simulated disk.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::Fate;
use super::content::File;

#[derive(Clone, Debug)]
enum Entry {
    Put(String, usize),
    Drop(String),
    /// Rename of this file, with the old and the new name.
    Move(usize, String, String),
}

/// Current names, names on the platter, and the changes in between, by their operation.
#[derive(Clone, Debug, Default)]
struct Dir {
    now: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    pending: Vec<(u64, Entry)>,
}

fn apply(names: &mut BTreeMap<String, usize>, entry: &Entry) {
    match entry {
        Entry::Put(name, id) => {
            names.insert(name.clone(), *id);
        }
        Entry::Drop(name) => {
            names.remove(name);
        }
        // Another file that had the name before is not moved.
        Entry::Move(id, from, to) => {
            if names.get(from) == Some(id) {
                names.remove(from);
                names.insert(to.clone(), *id);
            }
        }
    }
}

impl Dir {
    fn change(&mut self, operation: u64, entry: Entry) {
        apply(&mut self.now, &entry);
        self.pending.push((operation, entry));
    }

    fn sync(&mut self) {
        self.durable = self.now.clone();
        self.pending.clear();
    }
}

#[derive(Clone, Debug)]
enum Node {
    File(File),
    Dir(Dir),
}

/// Files and directories by number; the root is 0.
#[derive(Clone, Debug)]
pub struct Tree(Vec<Node>);

impl Tree {
    pub fn new() -> Tree {
        Tree(vec![Node::Dir(Dir::default())])
    }

    fn find(&self, path: &Path) -> io::Result<usize> {
        let mut at = 0;
        for part in path.components() {
            if let Component::Normal(name) = part {
                let Node::Dir(dir) = &self.0[at] else {
                    return Err(ErrorKind::NotADirectory.into());
                };
                let name = name.to_string_lossy();
                at = *dir.now.get(&*name).ok_or(ErrorKind::NotFound)?;
            }
        }
        Ok(at)
    }

    pub fn file(&self, path: &Path) -> io::Result<usize> {
        let id = self.find(path)?;
        match self.0[id] {
            Node::File(_) => Ok(id),
            Node::Dir(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    pub fn dir(&self, path: &Path) -> io::Result<usize> {
        let id = self.find(path)?;
        match self.0[id] {
            Node::Dir(_) => Ok(id),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    /// Returns the file with a number from [`Tree::file`].
    pub fn node(&mut self, id: usize) -> &mut File {
        match &mut self.0[id] {
            Node::File(file) => file,
            Node::Dir(_) => unreachable!("no handle leads to a directory"),
        }
    }

    fn parent(&mut self, path: &Path) -> io::Result<(&mut Dir, String)> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let parent = self.dir(path.parent().unwrap_or(Path::new("/")))?;
        match &mut self.0[parent] {
            Node::Dir(dir) => Ok((dir, name.to_string_lossy().into_owned())),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn add(&mut self, path: &Path, node: Node, operation: u64) -> io::Result<usize> {
        let id = self.0.len();
        let (dir, name) = self.parent(path)?;
        if dir.now.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        dir.change(operation, Entry::Put(name, id));
        self.0.push(node);
        Ok(id)
    }

    pub fn create(&mut self, path: &Path, operation: u64) -> io::Result<usize> {
        self.add(path, Node::File(File::default()), operation)
    }

    pub fn create_dir(&mut self, path: &Path, operation: u64) -> io::Result<()> {
        self.add(path, Node::Dir(Dir::default()), operation)?;
        Ok(())
    }

    /// Renames within one directory, which is all that the store does.
    pub fn rename(&mut self, from: &Path, to: &Path, operation: u64) -> io::Result<()> {
        if from.parent() != to.parent() {
            return Err(ErrorKind::CrossesDevices.into());
        }
        let moved = self.find(from)?;
        if let Ok(id) = self.find(to)
            && let Node::Dir(dir) = &self.0[id]
            && !dir.now.is_empty()
        {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        let (_, to) = self.parent(to)?;
        let (dir, from) = self.parent(from)?;
        dir.change(operation, Entry::Move(moved, from, to));
        Ok(())
    }

    pub fn remove(&mut self, path: &Path, operation: u64) -> io::Result<()> {
        self.file(path)?;
        let (dir, name) = self.parent(path)?;
        dir.change(operation, Entry::Drop(name));
        Ok(())
    }

    pub fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        match &self.0[self.dir(path)?] {
            Node::Dir(dir) => Ok(dir.now.keys().cloned().collect()),
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    pub fn sync(&mut self, id: usize) {
        match &mut self.0[id] {
            Node::File(file) => file.sync(),
            Node::Dir(dir) => dir.sync(),
        }
    }

    /// Returns the tree after a power cut.
    pub fn survivor(&self, fate: &mut Fate) -> Tree {
        let nodes = self.0.iter().map(|node| match node {
            Node::File(file) => Node::File(file.survivor(fate)),
            Node::Dir(dir) => {
                let mut names = dir.durable.clone();
                fate.next_file();
                for (operation, entry) in &dir.pending {
                    if fate.survives(*operation) {
                        apply(&mut names, entry);
                    }
                }
                Node::Dir(Dir {
                    now: names.clone(),
                    durable: names,
                    pending: Vec::new(),
                })
            }
        });
        Tree(nodes.collect())
    }

    fn walk(&self, id: usize, path: &Path, visit: &mut impl FnMut(&Path, &Node)) {
        visit(path, &self.0[id]);
        if let Node::Dir(dir) = &self.0[id] {
            for (name, id) in &dir.now {
                self.walk(*id, &path.join(name), visit);
            }
        }
    }

    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let mut files = Vec::new();
        self.walk(0, Path::new("/"), &mut |path, node| {
            if let Node::File(file) = node {
                files.push((path.into(), file.now.len()));
            }
        });
        files
    }

    pub fn hash(&self) -> u128 {
        let mut hash = Xxh3::new();
        self.walk(0, Path::new("/"), &mut |path, node| {
            hash.update(path.as_os_str().as_encoded_bytes());
            if let Node::File(file) = node {
                file.now.hash(&mut hash);
            }
        });
        hash.digest128()
    }
}
