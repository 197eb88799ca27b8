//! How to tell that a component is ready.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::net::TcpStream;

use crate::paths::RunDir;
use crate::{client, plain_http, wait};

/// Generous: a cold disk cache makes the first start of the large programs slow.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// A sign of readiness.
#[derive(Debug)]
pub(crate) enum Probe {
    /// None: other signs show it, such as nodes that are Ready.
    Nothing,
    /// Something accepts connections there.
    Tcp(String),
    /// A plain HTTP address and path answer 200.
    Http(&'static str, &'static str),
    /// The API server's own `/readyz`.
    ApiServer,
}

impl Probe {
    pub(crate) async fn wait(&self, run: &RunDir, component: &str) -> Result<()> {
        let what = format!("`{component}` to be ready");
        wait::until(what, READY_WITHIN, async || self.look(run).await.map(Some)).await
    }

    async fn look(&self, run: &RunDir) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Tcp(address) => {
                TcpStream::connect(address).await.with_context(|| address.clone())?;
                Ok(())
            }
            Self::Http(address, path) => {
                let (status, body) = plain_http::get(address, path).await?;
                ensure!(status.is_success(), "{address}{path} answers {status}: {body}");
                Ok(())
            }
            Self::ApiServer => {
                let client = client::from_file(&run.kubeconfig()).await?;
                client.request_text(http::Request::get("/readyz").body(Vec::new())?).await?;
                Ok(())
            }
        }
    }
}
