import InletCore
import SystemPackage
import Testing

struct SidecarMergeTests {
    private func plan(
        _ facts: Facts, known: Set<String>? = nil, key: String = "{name}", with: [String: String] = [:]
    ) throws -> Plan {
        let route = Route(
            name: "gigs", key: try KeyTemplate(key), to: ["stage"], with: try with.mapValues { try KeyTemplate($0) },
            sidecarFields: known)
        let identity = FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1)
        let decision = RouteTable([route]).plan(
            Arrival(root: "/drop", path: "band/song.mp4", identity: identity), facts: facts,
            at: WallTime(milliseconds: 42), zone: "UTC")
        guard case .plan(let plan) = decision else { throw Unplanned() }
        return plan
    }

    private struct Unplanned: Error {}

    @Test func `a sidecar wins over the templates, field by field`() throws {
        let plan = try plan(
            Facts(metadata: ["label": "Live", "rating": "5"]), with: ["label": "{stem}", "org_name": "{folder[1]}"])
        #expect(plan.with == ["label": "Live", "rating": "5", "org_name": "band"])
        #expect(plan.notes.isEmpty)
    }

    @Test func `a sidecar may empty a field`() throws {
        #expect(try plan(Facts(metadata: ["label": ""]), with: ["label": "{stem}"]).with == ["label": ""])
    }

    @Test func `without a sidecar the templates stand`() throws {
        #expect(try plan(Facts(), with: ["label": "{stem}"]).with == ["label": "song"])
    }

    @Test func `fields that no destination knows are left out and said`() throws {
        let plan = try plan(
            Facts(metadata: ["label": "Live", "ratng": "5", "key": "../../etc/passwd", "x\n": "1"]),
            known: ["label", "rating"])
        #expect(plan.with == ["label": "Live"])
        #expect(
            plan.notes == [
                "the sidecar's field 'key' is none of the destination's and is left out",
                "the sidecar's field 'ratng' is none of the destination's and is left out; did you mean 'rating'?",
                "the sidecar's field 'x\\x0A' is none of the destination's and is left out",
            ])
    }

    @Test func `a sidecar cannot choose the place of its file`() throws {
        let facts = Facts(metadata: ["key": "elsewhere", "owner": "root", "category": "x", "to": "other", "name": "n"])
        let plan = try plan(facts, key: "{category}/{owner}/{name}")
        #expect(plan.key == "videos/song.mp4")
        #expect(plan.category == "videos")
        #expect(plan.destinations == ["stage"])
    }

    @Test func `a value over several lines becomes one line`() throws {
        let facts = Facts(metadata: ["notes": "first\r\nsecond\n\n\tthird\u{7}\u{1B}[2J"])
        #expect(try plan(facts).with == ["notes": "first second third__[2J"])
    }

    @Test func `the stand-in for a date of capture is said once`() throws {
        let with = ["event_date": "{captured:yyyy-MM-dd}"]
        let fallback = try plan(Facts(captured: .unknown), key: "{captured:yyyy}/{name}", with: with)
        #expect(fallback.key == "1970/song.mp4")
        #expect(
            fallback.notes == [
                "the file names no date of capture; {captured} is its modification time, 1970-01-01T00:00:00.000Z"
            ])
        let time = try #require(CaptureTime(year: 2026, month: 11, day: 21, hour: 1, minute: 2, second: 3))
        let known = try plan(Facts(captured: .at(time, origin: "x")), key: "{captured:yyyy}/{name}", with: with)
        #expect(known.key == "2026/song.mp4")
        #expect(known.with == ["event_date": "2026-11-21"])
        #expect(known.notes.isEmpty)
    }

    @Test(arguments: [
        (Sidecar(), DuplicateRule.skip), (Sidecar(fields: ["a": "1"]), .off), (Sidecar(labels: ["a": "1"]), .off),
    ])
    func `what a sidecar says, be it labels only, makes a file no duplicate`(
        _ sidecar: Sidecar, _ expected: DuplicateRule
    ) throws {
        var route = Route(name: "r", to: ["a"])
        route.dedupe = .skip
        var facts = Facts(sha256: Digest(.sha256, hex: String(repeating: "0", count: 64)))
        facts.add(sidecar)
        let identity = FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1)
        let arrival = Arrival(root: "/drop", path: "a", identity: identity)
        let decision = RouteTable([route]).plan(arrival, facts: facts, at: WallTime(milliseconds: 42))
        guard case .plan(let plan) = decision else { throw Unplanned() }
        #expect(plan.dedupe == expected)
    }

    @Test func `a date of capture is only asked for where a template has it`() throws {
        let route = Route(
            name: "r", to: ["a"], with: ["event_date": try KeyTemplate("{captured:yyyy-MM-dd}")])
        #expect(route.facts == [.captured])
        #expect(Facts().missing(of: [.captured]) == [.captured])
        #expect(Facts(captured: .unknown).missing(of: [.captured]).isEmpty)
        #expect(try plan(Facts()).notes.isEmpty)
    }
}
