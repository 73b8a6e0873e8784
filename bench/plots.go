package main

import (
	"bytes"
	"image/color"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// colors tell series apart, also for those who do not see red and green as two (Okabe and Ito, 2008).
var colors = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{230, 159, 0, 255},
}

// A series is a line of a plot.
type series struct {
	name   string
	points plotter.XYs
	errors []struct{ Low, High float64 } // of Y
}

// drawAll draws what there are results for.
func drawAll(dir string, results []result) error {
	draw := map[string]func([]result) *plot.Plot{
		"timers.svg":        drawTimers,
		"lock-time.svg":     drawLockTime,
		"lookup.svg":        drawLookups,
		"grace-periods.svg": drawGracePeriods,
		"exits.svg":         drawExits,
	}
	for name, f := range draw {
		p := f(results)
		if p == nil {
			continue
		}
		if err := writeFile(filepath.Join(dir, name), func(w io.Writer) error { return writeSVG(w, p) }); err != nil {
			return err
		}
	}
	return nil
}

// writeSVG draws p with its legend below it, where nothing lies under the text, and with room at the edges
// for the half of a label that reaches past its axis.
func writeSVG(w io.Writer, p *plot.Plot) error {
	const width, height, edge = 16 * vg.Centimeter, 10 * vg.Centimeter, vg.Centimeter / 2
	legend := p.Legend
	p.Legend = plot.NewLegend()
	legend.Left, legend.Padding, legend.XOffs = true, 2, 2*edge
	below := legend.Rectangle(draw.Canvas{}).Size().Y + edge

	c := vgsvg.New(width, height+below)
	all := draw.New(c)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	p.Draw(draw.Crop(all, edge/2, -edge, below, -edge/2))
	legend.Draw(draw.Crop(all, 0, 0, edge/2, 0))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	// Who does not have the font is to see one without serifs too.
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")))
	return err
}

func newPlot(title, x, y string) *plot.Plot {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.BackgroundColor = color.White
	p.Title.Padding = 8
	p.Add(plotter.NewGrid())
	return p
}

// addSeries draws them with the extremes of their rounds.
func addSeries(p *plot.Plot, all []series) {
	for i, s := range all {
		line, points, err := plotter.NewLinePoints(s.points)
		if err != nil {
			panic(err) // a number that is none
		}
		line.Color, points.Color = colors[i%len(colors)], colors[i%len(colors)]
		line.Width = 1.5
		points.Shape = draw.CircleGlyph{}
		p.Add(line, points)
		p.Legend.Add(s.name, line, points)
		if s.errors == nil {
			continue
		}
		bars, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{s.points, s.errors})
		if err != nil {
			panic(err)
		}
		bars.Color = colors[i%len(colors)]
		p.Add(bars)
	}
}

// seriesOf makes a series of each impl of the rows whose names begin with prefix and end with suffix,
// on so many CPUs. What is in between is the x, and y is made of the nanoseconds.
func seriesOf(results []result, prefix, suffix string, cpus int, y func(ns float64) float64) (all []series) {
	at := make(map[string]int)
	for _, r := range results {
		middle, ok := strings.CutPrefix(r.name, prefix)
		middle, ok2 := strings.CutSuffix(middle, suffix)
		if !ok || !ok2 || r.cpus != cpus {
			continue
		}
		x := sizeOf(middle)
		for i, im := range r.impls {
			k, ok := at[im.name]
			if !ok {
				k = len(all)
				at[im.name] = k
				all = append(all, series{name: im.name})
			}
			t := r.times(i)
			mid, a, b := y(t.median), y(t.least), y(t.most)
			all[k].points = append(all[k].points, plotter.XY{X: x, Y: mid})
			all[k].errors = append(all[k].errors, struct{ Low, High float64 }{min(a, b) - mid, max(a, b) - mid})
		}
	}
	return all
}

// sizeOf is the number that a name has, such as 64k.
func sizeOf(s string) float64 {
	factor := 1
	if rest, ok := strings.CutSuffix(s, "k"); ok {
		s, factor = rest, 1<<10
	} else if rest, ok := strings.CutSuffix(s, "M"); ok {
		s, factor = rest, 1<<20
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err) // the name of a row
	}
	return float64(n * factor)
}

func mostCPUs() int { return slices.Max(cpuCounts()) }

func drawTimers(results []result) *plot.Plot {
	all := seriesOf(results, "Timers/goroutines=", "", mostCPUs(), func(ns float64) float64 { return 1e3 / ns })
	if all == nil {
		return nil
	}
	p := newPlot("Timers: Gettime on "+strconv.Itoa(mostCPUs())+" CPUs", "goroutines", "million calls a second")
	addSeries(p, all)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks{1: "1", 2: "2", 4: "4", 8: "8", 16: "16"}
	p.Y.Min = 0
	return p
}

func drawLookups(results []result) *plot.Plot {
	all := seriesOf(results, "Find/n=", "/order=random", 1, func(ns float64) float64 { return ns })
	if all == nil {
		return nil
	}
	p := newPlot("Looking up an id at random, on one CPU", "ids in the table", "nanoseconds")
	addSeries(p, all)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks{1 << 10: "1k", 1 << 16: "64k", 1 << 20: "1M"}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	return p
}

func drawGracePeriods(results []result) *plot.Plot {
	var all []series
	for _, r := range results {
		readers, ok := strings.CutPrefix(r.name, "Synchronize/readers=")
		if !ok {
			continue
		}
		for i, im := range r.impls {
			all = append(all, percentileSeries(im.name+", "+readers+" readers", r.more(i)))
		}
	}
	if all == nil {
		return nil
	}
	p := newPlot("Waiting for readers", "percentile", "microseconds")
	addSeries(p, all)
	percentileAxes(p)
	return p
}

// drawExits has percentiles of how long leaving a namespace takes.
func drawExits(results []result) *plot.Plot {
	var all []series
	for _, r := range results {
		if r.name != "NamespaceExit/measure=elapsed" {
			continue
		}
		for i, im := range r.impls {
			all = append(all, percentileSeries(im.name, r.more(i)))
		}
	}
	if all == nil {
		return nil
	}
	p := newPlot("How long an exit takes, of 1000 at once", "percentile", "microseconds")
	addSeries(p, all)
	percentileAxes(p)
	return p
}

func percentileSeries(name string, more map[string]float64) series {
	s := series{name: name}
	for x, unit := range percentileNames {
		s.points = append(s.points, plotter.XY{X: float64(x), Y: more[unit] / 1e3})
	}
	return s
}

func percentileAxes(p *plot.Plot) {
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	p.X.Tick.Marker = ticks{0: "50", 1: "90", 2: "99", 3: "most"}
}

// drawLockTime has bars for the share of the CPU time that went into locks.
func drawLockTime(results []result) *plot.Plot {
	var names, labels []string
	var values []plotter.Values // by impl
	for _, r := range results {
		work, n, _ := strings.Cut(r.name, "/goroutines=")
		if r.cpus != mostCPUs() || work != "Timers" && work != "Semop" && work != "SemMixed" {
			continue
		}
		known := true // a profile may have had no samples
		for i := range r.impls {
			_, ok := r.more(i)[inLock]
			known = known && ok
		}
		if !known {
			continue
		}
		labels = append(labels, strings.Replace(work, "SemMixed", "Mixed", 1)+"\n"+n)
		for i, im := range r.impls {
			if i == len(values) {
				values = append(values, nil)
				names = append(names, im.name)
			}
			values[i] = append(values[i], r.more(i)[inLock])
		}
	}
	if values == nil {
		return nil
	}
	p := newPlot("Time in locks, on "+strconv.Itoa(mostCPUs())+" CPUs", "workload and goroutines", "% of the CPU time")
	const width = 16
	for i, v := range values {
		bars, err := plotter.NewBarChart(v, width)
		if err != nil {
			panic(err)
		}
		bars.Color, bars.LineStyle.Width = colors[i], 0
		bars.Offset = vg.Length(i)*width - width/2
		p.Add(bars)
		p.Legend.Add(names[i], bars)
	}
	p.NominalX(labels...)
	p.Y.Min, p.Y.Max = 0, 100
	p.X.Min, p.X.Max = p.X.Min-0.5, p.X.Max+0.5
	return p
}

// ticks are marks at given places.
type ticks map[float64]string

func (t ticks) Ticks(low, high float64) (all []plot.Tick) {
	for _, v := range slices.Sorted(maps.Keys(t)) {
		if low <= v && v <= high {
			all = append(all, plot.Tick{Value: v, Label: t[v]})
		}
	}
	return all
}

// decades are marks at the powers of ten, with all their digits, and smaller ones between.
type decades struct{}

func (decades) Ticks(low, high float64) (all []plot.Tick) {
	for _, t := range (plot.LogTicks{Prec: -1}).Ticks(low, high) {
		if t.Value < low || high < t.Value {
			continue // they would have room kept for them
		}
		if t.Label != "" {
			t.Label = strconv.FormatFloat(t.Value, 'f', -1, 64)
		}
		all = append(all, t)
	}
	return all
}
