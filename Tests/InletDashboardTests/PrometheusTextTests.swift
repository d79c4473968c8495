import Foundation
import InletCore
import Testing

@testable import InletDashboard

/// The text format that Prometheus reads.
@Suite struct PrometheusTextTests {
    @Test(arguments: [
        ("plain", "plain", "plain"), ("a\\b", "a\\\\b", "a\\\\b"), ("a\nb", "a\\nb", "a\\nb"),
        ("say \"no\"", "say \\\"no\\\"", "say \"no\""), ("\r\n", "\r\\n", "\r\\n"),
        ("caf\u{E9} 日本", "caf\u{E9} 日本", "caf\u{E9} 日本"),
        ("\\n", "\\\\n", "\\\\n"), ("", "", ""),
    ])
    func `texts cannot end their line or their quotes`(text: String, label: String, help: String) {
        #expect(PrometheusText.escape(text, quotes: true) == label)
        #expect(PrometheusText.escape(text, quotes: false) == help)
    }

    @Test(arguments: [
        (0.0, "0"), (-0.0, "0"), (1.0, "1"), (0.0005, "0.0005"), (1.5, "1.5"), (-2.25, "-2.25"), (21_600, "21600"),
        (1e300, "1e+300"), (0.00001, "1e-05"), (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"),
    ])
    func `numbers are written as Prometheus reads them`(value: Double, text: String) {
        #expect(PrometheusText.format(value) == text)
    }

    @Test func `a family has its help and its type once, and metrics without a series are left out`() {
        var page = PrometheusText()
        page.add(.retries, 3, [("destination", "r2")])
        page.add(.retries, 0, [("destination", "lib\"\n")])
        page.add(.journalFailing, true)
        #expect(
            page.text == """
                # HELP inlet_journal_failing \(Metric.journalFailing.help)
                # TYPE inlet_journal_failing gauge
                inlet_journal_failing 1
                # HELP inlet_delivery_retries_total \(Metric.retries.help)
                # TYPE inlet_delivery_retries_total counter
                inlet_delivery_retries_total{destination="lib\\"\\n"} 0
                inlet_delivery_retries_total{destination="r2"} 3

                """)
        #expect(PrometheusText().text.isEmpty)
    }

    @Test func `the order in which series come is not seen`() {
        let series = [("b", "up"), ("a", "up"), ("b", "down"), ("a", "down")]
        var pages: Set<String> = []
        for start in series.indices {
            var page = PrometheusText()
            for (name, state) in series[start...] + series[..<start] {
                page.add(.destinationState, 1, [("destination", name), ("state", state)])
            }
            pages.insert(page.text)
        }
        #expect(pages.count == 1)
        let lines = pages.first?.split(separator: "\n").suffix(4).compactMap {
            $0.firstMatch(of: /"(.)",state="(\w+)"/)
        }
        #expect(lines?.map { "\($0.1) \($0.2)" } == ["a down", "a up", "b down", "b up"])
    }

    @Test func `a histogram adds up, and ends with all`() {
        var histogram = Histogram(bounds: [0.5, 1])
        for value in [0.25, 0.75, 4] { histogram.add(value) }
        var page = PrometheusText()
        page.add(.deliveryDuration, .histogram(histogram), [("destination", "r2")])
        #expect(
            page.text.split(separator: "\n").dropFirst() == [
                "# TYPE inlet_delivery_duration_seconds histogram",
                "inlet_delivery_duration_seconds_bucket{destination=\"r2\",le=\"0.5\"} 1",
                "inlet_delivery_duration_seconds_bucket{destination=\"r2\",le=\"1\"} 2",
                "inlet_delivery_duration_seconds_bucket{destination=\"r2\",le=\"+Inf\"} 3",
                "inlet_delivery_duration_seconds_sum{destination=\"r2\"} 5",
                "inlet_delivery_duration_seconds_count{destination=\"r2\"} 3",
            ])
    }

    @Test(arguments: Metric.allCases)
    func `every metric has a name of its kind and says what it is`(metric: Metric) {
        #expect(metric.rawValue.wholeMatch(of: /(inlet|process)_[a-z]+(_[a-z]+)*/) != nil)
        #expect((metric.kind == .counter) == metric.rawValue.hasSuffix("_total"))
        #expect(metric.help.wholeMatch(of: /[A-Z0-9].{10,}\./) != nil && !metric.help.contains("|"))
        #expect(Metric.allCases.count { $0.help == metric.help } == 1, "its help is another's as well")
    }
}

/// What is shipped for Prometheus and Grafana, and what the manual says, against the metrics that there are.
@Suite struct ShippedMetricsTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
    }

    /// Every name of a series in a query, and the names that it must be one of.
    private static func unknown(in query: String) -> [String] {
        let histograms = Metric.allCases.filter { $0.kind == .histogram }
        let parts = histograms.flatMap { metric in ["_bucket", "_sum", "_count"].map { metric.rawValue + $0 } }
        let others = Metric.allCases.filter { $0.kind != .histogram }.map(\.rawValue)
        let known = Set(parts + others)
        return query.matches(of: /\b(?:inlet|process)_[a-z_]+/).map { String($0.0) }.filter { !known.contains($0) }
    }

    /// All texts under these keys, however deep.
    private static func texts(_ keys: Set<String>, in value: Any) -> [String] {
        if let list = value as? [Any] { return list.flatMap { texts(keys, in: $0) } }
        guard let object = value as? [String: Any] else { return [] }
        return object.flatMap { key, value -> [String] in
            if keys.contains(key), let text = value as? String { return [text] }
            return texts(keys, in: value)
        }
    }

    @Test func `the Grafana dashboard asks for nothing that there is not, and for everything that there is`() throws {
        let json = try JSONSerialization.jsonObject(with: Data(Self.text("packaging/grafana/inlet.json").utf8))
        let queries = Self.texts(["expr", "query", "definition"], in: json)
        #expect(queries.count > 40)
        for query in queries { #expect(Self.unknown(in: query) == [], "\(query)") }
        let all = queries.joined(separator: " ")
        for metric in Metric.allCases { #expect(all.contains(metric.rawValue), "\(metric.rawValue) is not shown") }
    }

    @Test func `every query of the dashboard goes to the data source that was chosen`() throws {
        let text = try Self.text("packaging/grafana/inlet.json")
        let sources = Set(text.matches(of: /"uid": "([^"]*)"/).map { String($0.1) })
        #expect(sources == ["${datasource}", "inlet"])
    }

    @Test func `the alerts ask for nothing that there is not`() throws {
        let lines = try Self.text("packaging/prometheus/alerts.yml").split(separator: "\n")
            .filter { $0.contains("expr:") }
        #expect(lines.count == 16)
        for line in lines { #expect(Self.unknown(in: String(line)) == [], "\(line)") }
    }

    @Test func `the manual's reference lists every metric, in order, with its labels and its meaning`() throws {
        let entries = try #require(MetricsPage.reference.array)
        #expect(entries.map { $0["name"]?.string } == Metric.allCases.map(\.rawValue))
        #expect(entries.map { $0["type"]?.string } == Metric.allCases.map(\.kind.rawValue))
        #expect(entries.map { $0["help"]?.string } == Metric.allCases.map(\.help))
        #expect(entries.map { ($0["labels"]?.array ?? []).map(\.string) } == Metric.allCases.map(\.labels))
    }

    @Test(.enabled(if: Promtool.isThere, "needs promtool, of Debian's package prometheus"))
    func `promtool takes the alerts, and they fire when they should`() throws {
        let folder = Self.root.appendingPathComponent("packaging/prometheus")
        let rules = try Promtool.run(["check", "rules", folder.appendingPathComponent("alerts.yml").path], input: nil)
        #expect(rules.code == 0, "\(rules.said)")
        let tests = folder.appendingPathComponent("alerts_test.yml").path
        let ends = try Promtool.run(["test", "rules", tests], input: nil)
        #expect(ends.code == 0, "\(ends.said)")
    }
}
