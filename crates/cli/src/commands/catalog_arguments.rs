//! `--catalog`: the user's own volume types, for every command that takes their names.

use std::path::PathBuf;

use clap::Args;
use fathom_catalog::Catalog;

use crate::exit::Complaint;

/// Which catalogue is used.
#[derive(Args)]
pub struct CatalogArguments {
    /// Volume types of your own, beside those shipped (or FATHOM_CATALOG, or fathom/volumes.toml in ~/.config)
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

impl CatalogArguments {
    /// The shipped types with the user's own; from here on they are those that targets name.
    ///
    /// # Errors
    /// The user's file cannot be read, or something in it cannot be.
    pub fn catalogue(&self) -> Result<&'static Catalog, Complaint> {
        Ok(fathom_assess::use_catalogue(self.catalog.as_deref())?)
    }

    /// The same where a file is named; otherwise nothing is read until a target names a type.
    ///
    /// # Errors
    /// As for [`CatalogArguments::catalogue`].
    pub fn use_named(&self) -> Result<(), Complaint> {
        if self.catalog.is_some() {
            self.catalogue()?;
        }
        Ok(())
    }
}
