//! `--image`: the tool sets the image itself, zone by zone.

use anyhow::{Result, ensure};
use zone_lab::Lab;

use crate::support::{
    History, LONG, Layout, PROMOTE, RING, SOAKS, ensure_all_on, ensure_code, ensure_says, group,
};

/// Without gates, setting the image zone by zone is the order.
#[tokio::test]
async fn an_image_goes_through_zones_without_gates() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "image", Layout { gate: false, ..RING }).await?;
    let history = History::record(&namespace);
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--image", "myapp:v2"]);
    let promoted = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    history.ensure_one_at_a_time()?;
    ensure!(history.order() == ["a", "b", "c"], "order was {:?}", history.order());
    ensure_all_on(&namespace, "myapp:v2").await
}

/// With gates, each zone's image is set and its gate opened when its turn comes.
#[tokio::test]
async fn an_image_goes_through_zones_with_gates() -> Result<()> {
    let lab = Lab::connect().await?;
    let namespace = group(&lab, "gated", RING).await?;
    let history = History::record(&namespace);
    let arguments = PROMOTE.into_iter().chain(SOAKS).chain(["--image", "app=myapp:v2"]);
    let promoted = namespace.plugin(arguments).deadline(LONG).run().await?;
    ensure_code(&promoted, 0)?;
    history.ensure_one_at_a_time()?;
    ensure!(history.order() == ["a", "b", "c"], "order was {:?}", history.order());
    let again = PROMOTE.into_iter().chain(["--image", "app=myapp:v2"]);
    let again = namespace.plugin(again).run().await?;
    ensure_code(&again, 0)?;
    ensure_says(&again, "every zone is there already")?;
    let unknown = PROMOTE.into_iter().chain(["--image", "web=myapp:v2"]);
    let unknown = namespace.plugin(unknown).run().await?;
    ensure_code(&unknown, 2)?;
    ensure_says(&unknown, "no container is called `web`; there is app")?;
    Ok(())
}
