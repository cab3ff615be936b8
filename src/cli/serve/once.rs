//! A value that is computed once and shared by many requests.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cashrank_serve::Result;

/// Value that the first caller computes while others wait for it.
pub struct Once<T> {
    made: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once {
            made: OnceLock::new(),
            making: Mutex::default(),
        }
    }
}

impl<T> Once<T> {
    pub fn get(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let _making = lock(&self.making);
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let new = make()?;
        Ok(self.made.get_or_init(|| new))
    }
}

/// Takes a lock even if its holder panicked: the data behind these locks is consistent at any time.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
