"""Charts: a widget that draws plotly figures in the colours of the page, and the figures."""

from explorer.ui.chart.chart import Chart
from explorer.ui.chart.curve import curve_figure

__all__ = ["Chart", "curve_figure"]
