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

    private static func topics(_ findings: [Finding], servers: Int = 1) -> [ProblemTopic] {
        DoctorFindings(findings, servers: servers).causes.map(\.topic)
    }

    @Test func `nothing is wrong where every finding is fine`() {
        let fine = DoctorFindings([Self.finding(.network, "destination a", .fine)], servers: 1)
        #expect(fine.isWell && fine.causes.isEmpty)
        #expect(!DoctorFindings([Self.finding(nil, "names", .warning)], servers: 0).isWell)
    }

    @Test func `a cause is the line that it is about, with its remedy`() {
        let causes = DoctorFindings([Self.finding(.credentials, "destination a")], servers: 1).causes
        #expect(causes == [.init(.credentials, "destination a: is so", remedy: "do so")])
    }

    @Test(
        arguments: [
            ([.network, .configuration], [.configuration, .network]),
            // Nothing starts with a wrong configuration, or without a journal.
            ([.agent, .configuration], [.configuration]), ([.state, .agent], [.state]),
            // Certificates and signatures are right at a time.
            ([.certificate, .credentials, .clock], [.clock]),
            // Files fail because of something else, if there is something else.
            ([.files, .credentials], [.credentials]), ([.files], [.files]), ([.advice, .files], [.files, .advice]),
            ([.limits, .folder, .agent, .held], [.agent, .held, .folder]),
            ([.names, .service, .access, .space], [.space, .access, .names]),
        ] as [([ProblemTopic], [ProblemTopic])])
    func `what explains most comes first, three at most, and what it explains is left out`(
        _ found: [ProblemTopic], _ expected: [ProblemTopic]
    ) {
        let findings = found.enumerated().map { Self.finding($1, "thing \($0)") }
        #expect(Self.topics(findings, servers: 9) == expected)
    }

    @Test(arguments: [ProblemTopic.names, .network, .certificate, .proxy])
    func `where all destinations fail in the same way, this machine is the cause`(_ topic: ProblemTopic) throws {
        let both = [Self.finding(topic, "destination a"), Self.finding(topic, "destination b")]
        let causes = DoctorFindings(both, servers: 2).causes
        #expect(causes.count == 1 && causes[0].text.hasSuffix("(destination a, destination b)"), "\(causes)")
        // Of three destinations the third answers.
        #expect(Self.topics(both, servers: 3) == [topic, topic])
        #expect(Self.topics(Array(both.prefix(1)), servers: 1) == [topic])
    }

    @Test func `a place that is wrong in two ways is named for the first`() {
        let findings = [ProblemTopic.network, .names].map { Self.finding($0, "destination a") }
        #expect(Self.topics(findings + [Self.finding(.network, "destination b")], servers: 3) == [.names, .network])
        #expect(Self.topics(findings) == [.names])
    }

    @Test func `each place counts once, with its worst line`() {
        let causes = DoctorFindings(
            [
                Self.finding(.folder, "watch /a", .warning, group: .watch),
                Finding(
                    group: .errors, check: "watch /a", grade: .wrong, text: "is worse", remedy: nil, topic: .folder),
                Self.finding(.folder, "watch /b", .warning, group: .watch),
            ], servers: 0
        ).causes
        #expect(causes.map(\.text) == ["watch /a: is worse", "watch /b: is so"])
    }

    @Test(
        arguments: [
            (CheckReport.Group.configuration, "configuration", .wrong, .configuration),
            (.configuration, "configuration", .warning, .advice), (.folders, "state_dir", .wrong, .state),
            (.watch, "watch /a", .wrong, .access), (.watch, "watch /a", .warning, .advice),
            (.destinations, "destination a", .unavailable, .service), (.system, "landlock", .wrong, .advice),
        ] as [(CheckReport.Group, String, CheckReport.Grade, ProblemTopic)])
    func `a finding without a topic has that of its place`(
        _ group: CheckReport.Group, _ check: String, _ grade: CheckReport.Grade, _ topic: ProblemTopic
    ) {
        #expect(Self.topics([Self.finding(nil, check, grade, group: group)]) == [topic])
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
