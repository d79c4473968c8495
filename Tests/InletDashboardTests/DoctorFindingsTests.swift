import InletCore
import Testing

@testable import InletDashboard

/// Which causes `inlet doctor` names, by what it has found.
@Suite struct DoctorFindingsTests {
    private typealias Finding = CheckReport.Finding

    private static func finding(
        _ topic: ProblemTopic?, _ check: String, _ grade: CheckReport.Grade = .unavailable,
        group: CheckReport.Group = .destinations
    ) -> Finding {
        Finding(group: group, check: check, grade: grade, text: "is so", remedy: "do so", topic: topic)
    }

    private static func topics(_ findings: [Finding], at hosts: [String: String] = [:]) -> [ProblemTopic] {
        DoctorFindings(findings, hosts: hosts).causes.map(\.topic)
    }

    /// Destinations, each on a server of its own.
    private static func hosts(_ names: String...) -> [String: String] {
        Dictionary(uniqueKeysWithValues: names.map { ("destination \($0)", "\($0).example") })
    }

    @Test func `nothing is wrong where every finding is fine`() {
        let fine = DoctorFindings([Self.finding(.network, "destination a", .fine)], hosts: Self.hosts("a"))
        #expect(fine.isWell && fine.causes.isEmpty && fine.hints == 0)
    }

    @Test func `advice alone is no fault, and beside a fault it is no cause`() {
        let advice = [Self.finding(nil, "names", .warning), Self.finding(.advice, "destination a", .warning)]
        let hints = DoctorFindings(advice, hosts: [:])
        #expect(hints.isWell && hints.causes.isEmpty && hints.hints == 2)
        let both = DoctorFindings(advice + [Self.finding(.folder, "watch /a", .warning)], hosts: [:])
        #expect(!both.isWell && both.causes.map(\.topic) == [.folder])
    }

    @Test func `a cause is the line that it is about, with its remedy`() {
        let causes = DoctorFindings([Self.finding(.credentials, "destination a")], hosts: [:]).causes
        #expect(causes == [.init(.credentials, "destination a: is so", remedy: "do so")])
    }

    @Test(
        arguments: [
            ([.network, .configuration], [.configuration, .network]),
            // Nothing starts with a wrong configuration, or without a journal.
            ([.agent, .configuration], [.configuration]), ([.state, .agent], [.state]),
            // A server whose clock differs says nothing about another one's credentials.
            ([.certificate, .credentials, .clock], [.clock, .certificate, .credentials]),
            // Files fail because of something else, if there is something else.
            ([.files, .credentials], [.credentials]), ([.files], [.files]), ([.advice, .files], [.files]),
            ([.limits, .folder, .agent, .held], [.agent, .held, .folder]),
            ([.names, .service, .access, .space], [.space, .access, .names]),
        ] as [([ProblemTopic], [ProblemTopic])])
    func `what explains most comes first, three at most, and what it explains is left out`(
        _ found: [ProblemTopic], _ expected: [ProblemTopic]
    ) {
        let findings = found.enumerated().map { Self.finding($1, "thing \($0)") }
        #expect(Self.topics(findings) == expected)
    }

    @Test func `a clock explains the certificate and the credentials of the same destination only`() {
        let same = [ProblemTopic.credentials, .certificate, .clock].map { Self.finding($0, "destination a") }
        #expect(Self.topics(same) == [.clock])
        #expect(Self.topics(same + [Self.finding(.credentials, "destination b")]) == [.clock, .credentials])
    }

    @Test(arguments: [ProblemTopic.names, .network, .certificate, .proxy])
    func `where all destinations fail in the same way, this machine is the cause`(_ topic: ProblemTopic) throws {
        let both = [Self.finding(topic, "destination a"), Self.finding(topic, "destination b")]
        let causes = DoctorFindings(both, hosts: Self.hosts("a", "b")).causes
        #expect(causes.count == 1 && causes[0].text.hasSuffix("(destination a, destination b)"), "\(causes)")
        // Of three destinations the third answers.
        #expect(Self.topics(both, at: Self.hosts("a", "b", "c")) == [topic, topic])
        // One server is no sign of this machine, whatever the number of its destinations.
        let one = ["destination a": "x.example", "destination b": "x.example"]
        #expect(Self.topics(both, at: one) == [topic, topic])
        #expect(Self.topics(Array(both.prefix(1)), at: Self.hosts("a")) == [topic])
        // Nor is a warning, or a destination's own fault.
        for grade in [CheckReport.Grade.warning, .wrong] {
            let own = [both[0], Self.finding(topic, "destination b", grade)]
            #expect(Self.topics(own, at: Self.hosts("a", "b")) == [topic, topic], "\(grade)")
        }
    }

    @Test func `a place that is wrong in two ways is named for the first`() {
        let findings = [ProblemTopic.network, .names].map { Self.finding($0, "destination a") }
        #expect(Self.topics(findings + [Self.finding(.network, "destination b")]) == [.names, .network])
        #expect(Self.topics(findings) == [.names])
    }

    @Test func `each place counts once, with its worst line`() {
        let causes = DoctorFindings(
            [
                Self.finding(.folder, "watch /a", .warning, group: .watch),
                Finding(
                    group: .errors, check: "watch /a", grade: .wrong, text: "is worse", remedy: nil, topic: .folder),
                Self.finding(.folder, "watch /b", .warning, group: .watch),
            ], hosts: [:]
        ).causes
        #expect(causes.map(\.text) == ["watch /a: is worse", "watch /b: is so"])
    }

    @Test(
        arguments: [
            (CheckReport.Group.configuration, "configuration", .wrong, .configuration),
            (.configuration, "configuration", .warning, nil), (.folders, "state_dir", .wrong, .state),
            (.folders, "state_dir", .warning, nil), (.folders, "results", .wrong, .access),
            (.watch, "watch /a", .wrong, .access), (.watch, "watch /a", .unavailable, .access),
            (.watch, "watch /a", .warning, nil), (.destinations, "destination a", .unavailable, .service),
            (.destinations, "destination a", .wrong, .service), (.destinations, "destination a", .warning, nil),
            (.limits, "inotify", .wrong, .limits), (.errors, "files", .wrong, .files),
            (.system, "landlock", .wrong, .configuration), (.system, "landlock", .warning, nil),
        ] as [(CheckReport.Group, String, CheckReport.Grade, ProblemTopic?)])
    func `a finding without a topic has that of its place, and a warning is advice`(
        _ group: CheckReport.Group, _ check: String, _ grade: CheckReport.Grade, _ topic: ProblemTopic?
    ) {
        let found = DoctorFindings([Self.finding(nil, check, grade, group: group)], hosts: [:])
        #expect(found.causes.map(\.topic) == [topic].compactMap(\.self) && found.isWell == (topic == nil))
    }

    @Test(arguments: [
        (DeliveryError.Verdict.credentials, ErrorCode.unauthorized, ProblemTopic.credentials),
        (.outage(after: nil), .nameNotFound, .names), (.outage(after: nil), .connectFailed, .network),
        (.outage(after: nil), .tlsFailed, .certificate), (.outage(after: nil), .proxyRefused, .proxy),
        (.credentials, .clockSkewed, .clock), (.retry(after: nil), .serverError, .service),
        (.outage(after: nil), .destinationFull, .space),
    ])
    func `an error of a destination leads to its topic`(
        _ verdict: DeliveryError.Verdict, _ code: ErrorCode, _ topic: ProblemTopic
    ) {
        #expect(ProblemTopic(DeliveryError(verdict, code, "no")) == topic)
    }
}
