//! Values that are computed once and shared by many requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use once_cell::sync::OnceCell;

/// Map of at most `MOST` values; the least recently requested ones are evicted. The first caller computes a value while
/// others wait for it; a computation that failed is tried again.
pub struct Recent<K, V, const MOST: usize>(Mutex<Vec<(K, Arc<OnceCell<V>>)>>);

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Recent<K, V, MOST> {
        Recent(Mutex::default())
    }
}

impl<K: PartialEq, V, const MOST: usize> Recent<K, V, MOST> {
    /// Returns the value for this key, which may still have to be computed.
    pub fn of(&self, key: K) -> Arc<OnceCell<V>> {
        let mut kept = lock(&self.0);
        let known = kept.iter().position(|(known, _)| *known == key);
        let found = match known {
            Some(at) => kept.remove(at),
            None => (key, Arc::default()),
        };
        if kept.len() == MOST {
            kept.remove(0);
        }
        let value = found.1.clone();
        kept.push(found);
        value
    }
}

/// Takes a lock even if its holder panicked: the data behind these locks is consistent at any time.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asked_for_longest_is_forgotten() {
        let few: Recent<u8, u8, 2> = Recent::default();
        let get = |name| few.of(name).get_or_try_init(|| Ok::<_, ()>(name)).copied();
        assert_eq!(
            (get(1), get(2), get(1), get(3)),
            (Ok(1), Ok(2), Ok(1), Ok(3))
        );
        let held: Vec<u8> = lock(&few.0).iter().map(|(name, _)| *name).collect();
        assert_eq!(held, [1, 3]);
        // A computation that failed is tried again.
        let new = few.of(4);
        assert!(new.get_or_try_init(|| Err(())).is_err());
        assert_eq!(few.of(4).get_or_try_init(|| Ok::<_, ()>(4)), Ok(&4));
    }
}
