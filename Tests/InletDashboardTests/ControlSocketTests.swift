import Foundation
import InletAgent
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletDashboard
@testable import InletPipelines

/// What goes through the control socket.
@Suite struct ControlSocketTests {
    /// Serves the API of a journal on a socket of its own while `body` asks it.
    private func serving(
        _ destination: Destination? = nil, _ body: (ControlClient, Journal) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let control = LocalControl(
            AgentControl(journal: journal) { $0 == destination?.name ? destination : nil })
        let socket = directory.path.appending("control.sock")
        let server = ControlServer(path: socket, control: control)
        let client = ControlClient(socket: socket)
        defer { client.shutdown() }
        try await whileServing({ try await server.run() }) {
            try await eventually("it answers") { (try? await client.ask(Endpoints.status)) != nil }
            try await body(client, journal)
        }
    }

    private func destination(
        _ token: @escaping @Sendable (_ refused: Secret?) async throws(DeliveryError) -> Secret
    ) -> Destination {
        var destination = Destination(
            name: "here", type: "test", pipeline: Nowhere(), smallLimit: 0, connections: 1, maxInFlight: nil)
        destination.accessToken = token
        return destination
    }

    @Test func `an answer that an agent of another version gives is told as that`() throws {
        let failure = try #require(
            throws: ControlClient.Failure.self
        ) { let _: CommandReport = try ControlClient.value(of: Array("{}".utf8)) }
        #expect(failure.description.contains("check that both have the same version") && !failure.isSilence)
    }

    @Test(
        arguments: [
            (0, .socket, nil), (1000, .socket, nil), (1001, .socket, "owner"), (65_534, .socket, "owner"),
            (1001, .full, nil), (1001, .read, nil), (nil, .read, "peer"), (nil, .socket, "peer"), (0, .full, nil),
        ] as [(UInt32?, Endpoint.Need, String?)])
    func `what makes one the agent is for its user and root`(user: UInt32?, need: Endpoint.Need, code: String?) {
        let fault = ControlServer.fault(user.map { PeerCredentials(user: $0) }, need, owner: 1000)
        #expect(fault?.code == code)
        if let fault { #expect(fault.status == 403) }
    }

    @Test func `a token comes through the socket, and only as the answer's own text`() async throws {
        let giving = destination { refused async throws(DeliveryError) in
            Secret(refused == nil ? "token-1" : refused?.reveal() == "token-1" ? "token-2" : "none")
        }
        try await serving(giving) { client, _ in
            let report = try await client.ask(Endpoints.accessToken, [.destination: "here"], body: nil)
            #expect(report.token?.reveal() == "token-1" && report.message.isEmpty)
            #expect(!"\(report)".contains("token-1"))
            let next = try await client.ask(
                Endpoints.accessToken, [.destination: "here"], body: report.token.map { TokenRequest(refused: $0) })
            #expect(next.token?.reveal() == "token-2")
        }
    }

    @Test(arguments: [("here", "the test refuses"), ("there", "no destination is named 'there'")])
    func `where there is no token, the answer says why`(name: String, reason: String) async throws {
        let refusing = destination { _ async throws(DeliveryError) in
            throw DeliveryError(.credentials, .unauthorized, "the test refuses")
        }
        try await serving(refusing) { client, _ in
            let report = try await client.ask(Endpoints.accessToken, [.destination: name], body: nil)
            #expect(report.token == nil && report.message.contains(reason))
        }
    }

    @Test func `one question tells of all jobs that have ended, in their order, and of the next one`() async throws {
        try await serving { client, journal in
            var jobs: [Int64] = []
            for number in 0..<4 { jobs.append(try await journal.take("\(number)", for: "here")) }
            for _ in 0..<2 { try await journal.settle(.ended(.failed, code: .badRequest, reason: "no"), for: "here") }
            let report = try await client.ask(Endpoints.follow, body: [jobs[1], 4711, jobs[0], jobs[2], jobs[3]])
            #expect(report.ends.map(\.job) == [jobs[1], 4711, jobs[0]])
            #expect(report.ends.map { $0.report?.state } == ["failed", nil, "failed"])
            #expect(report.next?.job == jobs[2] && report.moving.isEmpty)
        }
    }

    @Test func `files are handed in many at a time, whatever their names are, and each has its answer`() async throws {
        try await serving { client, _ in
            let odd = FilePath(bytes: Array("/in/".utf8) + [0xFF, 0x0A])
            let paths = (0..<600).map { FilePath("/in/\($0)") } + [odd]
            let answers = try await client.send(paths, to: nil, again: false)
            #expect(answers.count == paths.count && answers.allSatisfy { !$0.done && $0.job == nil })
            #expect(try await client.send([], to: nil, again: false).isEmpty)
        }
    }

    @Test func `what is not there is nil over the socket and on the journal, and numbers keep to their bounds`()
        async throws
    {
        try await serving { client, journal in
            try await Self.giveReceipt(journal)
            let local = LocalControl(AgentControl(journal: journal) { _ in nil })
            for control in [client, local] as [any ControlAPI] { try await Self.askForNothing(control) }
        }
    }

    /// Of job 1.
    private static func giveReceipt(_ journal: Journal) async throws {
        try await journal.take("film.mp4", for: "here")
        try await journal.settle(.ended(.failed, code: .badRequest, reason: "no"), for: "here")
        for job in try await journal.unfinished(at: .now, limit: 9) {
            _ = try await journal.finish(job.file, disposition: Disposition.kept, receipt: Array("{}".utf8), at: .now)
        }
    }

    private static func askForNothing(_ control: any ControlAPI) async throws {
        // A job's number is no bound to keep to: another job than the one that is named would be the answer.
        for id in ["17", "0"] { #expect(try await control.find(Endpoints.job, [.id: id])?.job == nil) }
        let batch = try await control.find(Endpoints.offload, [.id: Endpoints.lastBatch])
        let config = try await control.find(Endpoints.config)
        #expect(batch?.host == nil && config == nil)
        // As "inlet receipts" with --limit 0 and 20000 asks.
        for limit in ["0", "20000"] {
            let receipts = try await control.ask(Endpoints.receipts, [.limit: limit])
            #expect(receipts == ["{}"])
        }
        let unknown = try await control.ask(Endpoints.setPaused(true), [.destination: "no such"])
        #expect(!unknown.done && unknown.message.contains("no such"))
        let all = try await control.ask(Endpoints.setPaused(true), [.destination: nil])
        #expect(all.done)
    }

    @Test func `status shows what destinations work on, and when they are asked again`() async throws {
        let later = WallTime(milliseconds: 1_900_000_000_000)
        try await serving { client, journal in
            try await journal.take("film.mp4", for: "here")
            try await journal.settle(.waiting(until: later, saying: "generating\u{1B}[2J, 81 %"), for: "here")
            let working = try await client.ask(Endpoints.status).in_flight
            #expect(working.map(\.path) == ["/in/film.mp4"] && working.map(\.sent) == [9])
            #expect(working.map(\.next_look) == [later.rfc3339] && working.map(\.percent) == [nil])
            let step = try #require(working.first?.step)
            #expect(step.hasPrefix("generating") && step.hasSuffix(", 81 %") && !step.contains("\u{1B}"))
        }
    }
}
