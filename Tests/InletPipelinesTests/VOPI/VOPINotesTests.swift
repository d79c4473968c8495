import InletCore
import InletTransfer
import Testing

@testable import InletPipelines

/// Notes outlive the build that wrote them: a video in the middle of its chain goes on there, and is not paid twice.
struct VOPINotesTests {
    private static let now = WallTime(milliseconds: 1_700_000_100_000)
    private static let limits = VOPIChain.Limits(poll: .seconds(3), soft: .seconds(3600), hard: .seconds(21_600))

    /// As the first build with this destination wrote them, one step of the chain after the other.
    private static let upload =
        #"{"contentType":"video/mp4","expires":1700003600000,"publicURL":"https://s.example/up","url":"https://s.example/up?sig=1"}"#
    private static let spent =
        #"{"contentType":"video/mp4","expires":1700003600000,"publicURL":"https://s.example/up","url":""}"#
    private static let sent =
        #"{"etag":"900150983cd24fb0d6963f7d28e17f72","isProved":true,"md5":"900150983cd24fb0d6963f7d28e17f72"}"#
    private static let steps: [(notes: [String: String], step: String)] = [
        ([:], "presign"),
        (["upload": upload], "put"),
        (["upload": spent, "sent": sent], "create"),
        (["upload": spent, "sent": sent, "asked": "1", "completing": "", "creating": creating], "look"),
        (["upload": spent, "sent": sent, "completing": "", "job": running], "poll"),
        (["upload": spent, "sent": sent, "job": adopted, "trouble": trouble, "dead": #"["k"]"#], "poll"),
        (["upload": spent, "sent": sent, "job": ended, "results": results, "restarts": "1"], "fetch"),
    ]
    private static let creating = #"{"lookAt":1700000030000,"looks":1,"sentAt":1700000000000}"#
    private static let running = #"{"id":"j","isAdopted":false,"isFetching":false,"since":1700000000000}"#
    private static let adopted = #"{"id":"j","isAdopted":true,"isFetching":false,"since":1700000000000}"#
    private static let ended =
        #"{"fetchingSince":1700000050000,"id":"j","isAdopted":false,"isFetching":true,"since":1700000000000,"stuckSince":1700000060000}"#
    private static let trouble = #"{"cancelledAt":4,"failures":[1,2],"missing":1,"since":3}"#
    private static let results =
        #"{"entries":[{"object":"https://s.example/a.png","path":"images/hero/white.png","variant":"hero","version":"white"},{"frame":"f1","object":"https://s.example/f.png","path":"frames/f1.png"}],"expected":2}"#

    private func chain(_ notes: [String: String]) -> VOPIChain {
        VOPIChain(record: VOPIRecord(notes.mapValues { Array($0.utf8) }), limits: Self.limits)
    }

    private func step(_ notes: [String: String]) -> String {
        switch chain(notes).next(size: 1, now: Self.now) {
        case .presign: "presign"
        case .put: "put"
        case .create: "create"
        case .look: "look"
        case .poll: "poll"
        case .fetch: "fetch"
        case .wait: "wait"
        }
    }

    @Test func `notes of an earlier build lead on from the step they were in`() {
        for (notes, wanted) in Self.steps { #expect(step(notes) == wanted, "\(notes.keys.sorted())") }
        let record = chain(Self.steps[6].notes).record
        #expect(
            record.sent
                == VOPIRecord.Sent(
                    md5: "900150983cd24fb0d6963f7d28e17f72", etag: "900150983cd24fb0d6963f7d28e17f72", isProved: true))
        #expect(record.job?.fetchingSince == 1_700_000_050_000 && record.job?.stuckSince == 1_700_000_060_000)
        #expect(record.results?.entries.map(\.path) == ["images/hero/white.png", "frames/f1.png"])
        #expect(record.results?.expected == 2 && record.restarts == 1)
        let watched = chain(Self.steps[5].notes).record
        #expect(watched.trouble == VOPIRecord.Trouble(failures: [1, 2], since: 3, missing: 1, cancelledAt: 4))
        #expect(watched.dead == ["k"] && watched.job?.isAdopted == true)
        let asked = chain(Self.steps[3].notes).record
        #expect(asked.creating == VOPIRecord.Creating(sentAt: 1_700_000_000_000, lookAt: 1_700_000_030_000, looks: 1))
        #expect(asked.asked == 1)
    }

    @Test func `members that a note does not have yet, or that a later build added, change nothing`() {
        for (notes, wanted) in Self.steps {
            let later = notes.mapValues { $0.hasPrefix("{") ? #"{"added":{"later":[1]},"# + $0.dropFirst() : $0 }
            #expect(step(later) == wanted, "\(notes.keys.sorted())")
            #expect(chain(later).record == chain(notes).record)
        }
        #expect(step(["upload": #"{"publicURL":"https://s.example/up"}"#, "sent": "{}"]) == "create")
        #expect(step(["upload": Self.spent, "sent": Self.sent, "creating": "{}"]) == "look")
        #expect(step(["upload": Self.spent, "sent": Self.sent, "job": #"{"id":"j"}"#]) == "poll")
        #expect(step(["upload": Self.spent, "sent": Self.sent, "job": #"{"id":"j","isFetching":true}"#]) == "fetch")
        // One member that is something else than it should be takes no other with it.
        let odd = #"{"id":"j","since":"x","isFetching":true,"seen":[]}"#
        #expect(step(["upload": Self.spent, "sent": Self.sent, "job": odd]) == "fetch")
        let place = #"{"publicURL":"https://s.example/up","expires":"x"}"#
        #expect(step(["upload": place, "sent": #"{"md5":7}"#]) == "create")
        #expect(chain(["trouble": #"{"missing":2}"#]).record.trouble == VOPIRecord.Trouble(missing: 2))
        #expect(chain(["results": #"{"expected":3}"#]).record.results == VOPIManifest(expected: 3))
    }

    @Test func `a job whose note cannot be read is looked for, and not made a second time`() {
        for broken in ["", "{", "[]", #"{"id":7}"#] {
            #expect(step(["upload": Self.spent, "sent": Self.sent, "job": broken]) == "look", "\(broken)")
            #expect(step(["upload": Self.spent, "sent": Self.sent, "creating": broken]) == "look", "\(broken)")
        }
    }
}
