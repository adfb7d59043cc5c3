//! The accounts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tonic::Status;

use crate::rpc::{Receipt, Transfer};

/// A bank whose accounts live as long as it does.
#[derive(Debug, Clone, Default)]
pub struct Bank(Arc<Mutex<Books>>);

#[derive(Debug, Default)]
struct Books {
    cents: HashMap<String, u64>,
    transfers: u64,
}

impl Bank {
    /// A bank with these balances, in cents.
    pub fn with(balances: &[(&str, u64)]) -> Self {
        let cents = balances.iter().map(|(account, cents)| ((*account).to_owned(), *cents)).collect();
        Self(Arc::new(Mutex::new(Books { cents, transfers: 0 })))
    }

    /// What is in an account, in cents.
    pub fn balance(&self, account: &str) -> u64 {
        self.books().cents.get(account).copied().unwrap_or_default()
    }

    /// Moves money.
    ///
    /// # Errors
    /// `FAILED_PRECONDITION` when the account has less. A retry under the same key gets that answer too.
    pub fn transfer(&self, transfer: &Transfer) -> Result<Receipt, Status> {
        let mut books = self.books();
        let from = books.cents.entry(transfer.from.clone()).or_default();
        let left = from.checked_sub(transfer.cents);
        *from = left.ok_or_else(|| Status::failed_precondition("there is not so much in the account"))?;
        *books.cents.entry(transfer.to.clone()).or_default() += transfer.cents;
        books.transfers += 1;
        Ok(Receipt { number: books.transfers })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
