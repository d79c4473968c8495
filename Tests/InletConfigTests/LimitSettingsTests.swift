import InletConfig
import InletCore
import Testing

/// What arrives of `bandwidth:`, `schedule:` and `window:`.
struct LimitSettingsTests {
    private static let mib: Int64 = 1 << 20

    @Test func `rates and timetables of all together and of a destination are read`() throws {
        let limits = try parse(String(decoding: try FixtureTests.content("good/limits.yaml"), as: UTF8.self)).settings
            .bandwidth
        #expect(limits.all.base == 20 * Self.mib && limits.all.zone == "Europe/Berlin")
        #expect(
            limits.all.entries == [
                .init(DaySpan(from: 480, to: 1080, days: [.mon, .fri]), rate: 2_500_000),
                .init(DaySpan(from: 1320, to: 360), rate: nil),
                .init(DaySpan(from: 720, to: 1440, days: [.sun]), rate: 0),
            ])
        #expect(limits.destinations.keys.sorted() == ["stage"])
        let stage = try #require(limits.destinations["stage"])
        #expect(stage.base == 3 * Self.mib / 2 && stage.zone == "Europe/Berlin" && stage.isClosed)
    }

    @Test func `a window has its route's size, or one of 1 GiB, and the zone of the limits`() throws {
        let routes = try parse(String(decoding: try FixtureTests.content("good/limits.yaml"), as: UTF8.self)).settings
            .routes
        #expect(
            routes[0].window
                == DeliveryWindow(
                    DaySpan(from: 1320, to: 360, days: [.sat]), above: 2 << 30, zone: "Europe/Berlin"))
        #expect(routes[1].window == DeliveryWindow(DaySpan(from: 1320, to: 360), zone: "Europe/Berlin"))
    }

    @Test func `without limits nothing is limited`() throws {
        let settings = try parse("destinations: { lib: { type: folder, path: /lib } }\nroutes: [{ name: a, to: lib }]")
            .settings
        #expect(settings.bandwidth == BandwidthLimits() && settings.routes[0].window == nil)
    }
}
