import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

/// When receivers are tried again, and what they read.
@Suite struct NoticeTests {
    private static let start = WallTime(milliseconds: 1_700_000_000_000)

    private func notice(
        _ event: NoticeEvent = .failed, id: Int64 = 7, attempts: Int = 0, payload: String = "{\"a\":1}"
    ) -> Notice {
        Notice(
            id: id, sink: "ops", event: event, subject: nil, createdAt: Self.start, payload: Array(payload.utf8),
            attempts: attempts)
    }

    @Test func `who does not answer is asked after 5 s, then twice as long each time, at most an hour`() {
        let delays = (1...12).map { NotificationSchedule.delay($0).components.seconds }
        #expect(delays == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600])
    }

    @Test func `no answer holds the line, and its Retry-After counts where it is longer`() {
        var schedule = NotificationSchedule()
        let away = NoticeOutcome.unanswered(after: nil, reason: "away")
        #expect(
            schedule.event(away, of: notice(), at: Self.start) == .again(at: Self.start + .seconds(5), holdsLine: true))
        #expect(schedule.pausedUntil == Self.start + .seconds(5))
        let busy = NoticeOutcome.unanswered(after: .seconds(120), reason: "busy")
        #expect(
            schedule.event(busy, of: notice(attempts: 1), at: Self.start)
                == .again(at: Self.start + .seconds(120), holdsLine: true))
        #expect(schedule.event(.taken, of: notice(attempts: 2), at: Self.start) == .remove)
        #expect(schedule.pausedUntil == nil && schedule.failures == 0)
    }

    @Test func `a refused notice steps aside, a program's for a few times only`() {
        var schedule = NotificationSchedule()
        let refused = NoticeOutcome.refused(reason: "no", tries: 5)
        for attempts in 0..<4 {
            let again = schedule.event(refused, of: notice(attempts: attempts), at: Self.start)
            #expect(again == .again(at: Self.start + NotificationSchedule.delay(attempts + 1), holdsLine: false))
        }
        #expect(schedule.event(refused, of: notice(attempts: 4), at: Self.start) == .giveUp)
        #expect(schedule.event(.gone(reason: "410"), of: notice(), at: Self.start) == .giveUp)
        #expect(schedule.event(.cancelled, of: notice(), at: Self.start) == .leave)
    }

    @Test func `one notice that is refused pauses nothing, several in a row do, longer and longer`() {
        var schedule = NotificationSchedule()
        let refused = NoticeOutcome.refused(reason: "no", tries: nil)
        var pauses: [Int64?] = []
        for id in [1, 1, 2, 2, 3, 4] as [Int64] {
            _ = schedule.event(refused, of: notice(id: id), at: Self.start)
            pauses.append(schedule.pausedUntil.map { ($0 - Self.start).components.seconds })
        }
        #expect(pauses == [nil, nil, 5, 5, 10, 20])
        for id in 5...40 as ClosedRange<Int64> { _ = schedule.event(refused, of: notice(id: id), at: Self.start) }
        #expect(schedule.pausedUntil == Self.start + NotificationSchedule.longestDelay && schedule.isFailing)
        _ = schedule.event(.taken, of: notice(id: 41), at: Self.start)
        #expect(!schedule.isFailing)
        _ = schedule.event(refused, of: notice(id: 42), at: Self.start)
        #expect(schedule.pausedUntil == nil && schedule.isFailing)
    }

    @Test func `three days are enough, unless it was hardly tried`() {
        let away = NoticeOutcome.unanswered(after: nil, reason: "away")
        let late = Self.start + .seconds(3 * 86_400)
        var schedule = NotificationSchedule()
        #expect(schedule.event(away, of: notice(attempts: 7), at: late) == .giveUp)
        #expect(schedule.event(away, of: notice(attempts: 6), at: late) != .giveUp)
        #expect(schedule.event(away, of: notice(attempts: 99), at: late + .seconds(-1)) != .giveUp)
    }

    @Test(arguments: [
        (NoticeEvent.delivered, "file"), (.failed, "file"), (.rejected, "file"), (.batchDone, "batch"),
        (.destinationDown, "destination"), (.destinationUp, "destination"),
    ])
    func `a notice is one JSON object with the same bytes each time`(_ event: NoticeEvent, _ key: String) throws {
        let text = NotificationText(notice(event), identity: "j1", host: "box")
        #expect(text.body == NotificationText(notice(event, attempts: 3), identity: "j1", host: "box").body)
        let expected =
            "{\"id\":\"inlet-j1-7\",\"event\":\"\(event.rawValue)\",\"at\":\"\(Self.start.rfc3339)\",\"host\":\"box\","
            + "\"\(key)\":{\"a\":1}}"
        #expect(String(decoding: text.body, as: UTF8.self) == expected)
    }

    @Test(
        arguments: [
            ([.delivered: 2], "complete"), ([.delivered: 1, .duplicate: 1, .superseded: 1], "complete"),
            ([.delivered: 1, .failed: 1], "partial"), ([.failed: 1, .rejected: 2], "failed"),
        ] as [([FileState: Int], String)])
    func `a batch is complete, partial or failed`(_ counts: [FileState: Int], _ expected: String) {
        #expect(BatchOutcome(counts).rawValue == expected)
    }

    // MARK: - What is said of a batch

    private func batch(_ counts: [FileState: Int]) -> Batch {
        Batch(
            id: 3, name: "A001", unit: "A001", root: "/in", route: "all", state: FileState.worst(counts.keys),
            createdAt: Self.start, closedAt: Self.start, endedAt: Self.start + .seconds(1), generation: 1,
            counts: counts, labels: [:])
    }

    /// A file of the batch; a delivered one is at two destinations, of which one has told us where.
    private func job(_ id: Int64, _ state: FileState = .delivered) -> Job {
        var file = FileRow(
            id: id, root: "/in", path: FilePath("A001/\(id)"),
            identity: FileIdentity(size: 5, modified: 0, changed: 0, inode: 1, device: 1), state: state,
            mediaType: "text/plain", policy: FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy()),
            admittedAt: Self.start, labels: [:], digests: [])
        guard state == .delivered else {
            (file.code, file.reason) = (.badRequest, "no")
            return Job(file: file, deliveries: [])
        }
        let deliveries = [nil, "https://cdn/\(id)"].map { url in
            DeliveryRow(
                id: id, fileID: id, destination: "here", key: "k", fields: [:], state: .delivered, attempts: 1,
                nextAt: Self.start, proof: Proof(key: "k", size: 5, method: .size, url: url), waits: 0, crashes: 0)
        }
        return Job(file: file, deliveries: deliveries)
    }

    @Test func `a batch that ended in part is told with what arrived, where, and with what did not, and why`() {
        let told = NotificationText.batch(batch([.delivered: 1, .failed: 1]), [job(2, .failed), job(1)])
        let expected =
            #"{"batch":3,"name":"A001","path":"/in/A001","route":"all","outcome":"partial","state":"failed","#
            + #""files":2,"counts":{"delivered":1,"failed":1},"created_at":"\#(Self.start.rfc3339)","#
            + #""ended_at":"\#((Self.start + .seconds(1)).rfc3339)","#
            + #""delivered":[{"job":1,"path":"A001/1","size":5,"state":"delivered","urls":["https://cdn/1"]}],"#
            + #""not_delivered":[{"job":2,"path":"A001/2","size":5,"state":"failed","code":"bad_request","#
            + #""reason":"no"}]}"#
        #expect(String(decoding: told, as: UTF8.self) == expected)
    }

    @Test(arguments: [(999, nil), (1000, 1), (4999, 4000)] as [(Int, Int?)])
    func `of a large batch a thousand files are named, what did not arrive first, and the others counted`(
        _ delivered: Int, _ left: Int?
    ) throws {
        let jobs = [job(5000, .failed)] + (1...Int64(NotificationText.mostFiles - 1)).map { job($0) }
        let told = NotificationText.batch(batch([.delivered: delivered, .failed: 1]), jobs)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(told)) as? [String: Any])
        #expect(object["outcome"] as? String == "partial" && object["files"] as? Int == delivered + 1)
        #expect(object["counts"] as? [String: Int] == ["delivered": delivered, "failed": 1])
        #expect((object["delivered"] as? [Any])?.count == 999)
        #expect((object["not_delivered"] as? [[String: Any]])?.compactMap { $0["job"] as? Int } == [5000])
        #expect(object["not_listed"] as? Int == left)
    }

    @Test(arguments: [
        (ChildProcess.End.exited(0), NoticeOutcome.taken),
        (.exited(75), .unanswered(after: nil, reason: "the program asks for another try: why")),
        (.exited(3), .refused(reason: "the program ended with 3: why", tries: 5)),
        (.signalled(9), .refused(reason: "the program was ended by signal 9: why", tries: 5)),
        (.timedOut, .refused(reason: "the program took too long and was ended: why", tries: 5)),
        (.stuck, .refused(reason: "the program took too long and could not be ended: why", tries: 5)),
        (.cancelled, .cancelled),
    ])
    func `a program's end is an answer`(_ end: ChildProcess.End, _ expected: NoticeOutcome) {
        #expect(NotificationReceiver.outcome(ChildProcess.Outcome(end: end, errors: Array("why".utf8))) == expected)
    }

    @Test func `a program reads its notice as one whole line`() async {
        // `read` takes a line without its end for the end of the input.
        let words = ["/bin/sh", "-c", "IFS= read -r line && ! read -r more && case $line in {*}) ;; *) exit 9 ;; esac"]
        let outlet = NotificationReceiver(
            NotifySettings(name: "ops", receiver: .exec(words), timeout: .seconds(60)), webhook: nil,
            pool: BlockingPool(name: "hook", threads: 1))
        #expect(await outlet.test(at: Self.start) == .taken)
    }
}
