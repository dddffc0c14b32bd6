"""SQL views (`analytics_*`, made by migrations, documented column by column) and the queries behind the
dashboards."""
