//! TLS: who encrypts.

use rustls::crypto::{CryptoProvider, ring};

/// Has this process encrypt by *ring*, unless it has chosen somebody else. The driver asks for the process's choice, and
/// panics where there is none.
pub(crate) fn choose() {
    if CryptoProvider::get_default().is_none() {
        // Whoever was faster made the choice.
        let _ = ring::default_provider().install_default();
    }
}
