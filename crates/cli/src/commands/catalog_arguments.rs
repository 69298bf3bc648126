//! `--catalog`: the user's own volume types, for every command that takes their names.

use std::path::PathBuf;

use clap::Args;
use fathom_assess::VolumeTypes;

/// Which catalogue is used.
#[derive(Args)]
pub struct CatalogArguments {
    /// Additional volume types [default: FATHOM_CATALOG, else fathom/volumes.toml in ~/.config]
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
}

impl CatalogArguments {
    /// The types that names mean.
    pub fn types(&self) -> VolumeTypes {
        VolumeTypes::new(self.catalog.clone())
    }
}
