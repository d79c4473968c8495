package import InletCore

/// `inlet doctor --json`.
package struct DoctorReport: Codable, Sendable, NamedSchema {
    /// When it was made.
    package var at: String
    package var version: String
    package var checks: [CheckReport.Finding]
    /// The likeliest first, at most three; empty when nothing is wrong.
    package var causes: [DoctorFindings.Cause]
    package var exit_code: Int

    static let notes: [String: SchemaDescription] = [
        "at": .time("When it was made."), "causes": "The likeliest first, at most three; empty when nothing is wrong.",
        "exit_code": "The exit code of the command.",
    ]

    package init(
        at: String, version: String, checks: [CheckReport.Finding], causes: [DoctorFindings.Cause], exit_code: Int
    ) {
        (self.at, self.version, self.checks, self.causes, self.exit_code) = (at, version, checks, causes, exit_code)
    }
}

/// The subject of a problem. The order is that of the causes: what comes first explains most of what comes later, and is
/// worth repairing first.
package enum ProblemTopic: String, Codable, Sendable, CaseIterable, SchemaSample {
    case configuration
    /// The state directory and the journal in it.
    case state
    /// Bytes or inodes of a disk.
    case space
    case clock
    /// No agent runs.
    case agent
    /// Somebody has stopped it: a pause, or a limit of 0.
    case held
    /// A watched folder that is not there.
    case folder
    /// Rights on files and folders.
    case access
    /// DNS.
    case names
    case proxy
    case network
    case certificate
    case credentials
    /// A server that answers with errors.
    case service
    /// inotify, descriptors, memory.
    case limits
    /// Files that failed, and notifications.
    case files
    /// Something that works, and could be better.
    case advice

    /// Problems that this one usually causes: they are no causes of their own beside it.
    fileprivate var explains: Set<ProblemTopic> {
        switch self {
        case .configuration: [.agent]
        case .state: [.agent, .files]
        case .space, .held, .folder, .access, .names, .proxy, .network, .certificate, .credentials, .service: [.files]
        // A wrong clock explains faults of the same destination only: `causes` names each place once.
        case .clock, .agent, .limits, .files, .advice: []
        }
    }

    /// The topic of an error that a destination gave.
    package init(_ error: DeliveryError) {
        switch error.code {
        case .clockSkewed: self = .clock
        case .nameNotFound: self = .names
        case .proxyRefused: self = .proxy
        case .connectFailed, .timedOut, .stalled, .connectionLost: self = .network
        case .tlsFailed: self = .certificate
        case .destinationFull: self = .space
        case .destinationUnwritable: self = .access
        default: if case .credentials = error.verdict { self = .credentials } else { self = .service }
        }
    }
}

/// Finds the likeliest causes among the findings of `inlet doctor`. Pure.
package struct DoctorFindings: Sendable {
    package struct Cause: Codable, Sendable, Equatable, NamedSchema {
        package var topic: ProblemTopic
        /// A sentence without its full stop.
        package var text: String
        package var remedy: String?

        static var schemaName: String { "DoctorCause" }
        static let notes: [String: SchemaDescription] = ["remedy": "Left out where the text says enough."]

        package init(_ topic: ProblemTopic, _ text: String, remedy: String?) {
            (self.topic, self.text, self.remedy) = (topic, text, remedy)
        }
    }

    package static let most = 3

    private let problems: [(topic: ProblemTopic, finding: CheckReport.Finding)]
    private let hosts: [String: String]

    /// - Parameters:
    ///   - findings: in the order in which they were made; those that are fine do not count.
    ///   - hosts: the server of each destination that is reached over a network, by the name of its findings.
    package init(_ findings: [CheckReport.Finding], hosts: [String: String]) {
        problems = findings.filter { $0.grade != .fine }.map { (Self.topic(of: $0), $0) }
        self.hosts = hosts
    }

    /// Whether nothing is wrong. Hints do not count.
    package var isWell: Bool { problems.count == hints }

    /// Lines about what works, and could be better.
    package var hints: Int { problems.count { $0.topic == .advice } }

    /// The likeliest first: by topic, then by grade, then as they were found. Advice is no cause of anything.
    package var causes: [Cause] {
        let topics = Set(problems.map(\.topic)).subtracting([.advice])
        let explained = topics.reduce(into: Set<ProblemTopic>()) { $0.formUnion($1.explains) }
        var found: [Cause] = []
        var named: Set<String> = []
        for topic in ProblemTopic.allCases where topics.contains(topic) && !explained.contains(topic) {
            // A second fault of the same place follows from the first.
            let own = problems.filter { $0.topic == topic && !named.contains($0.finding.check) }.map(\.finding)
            found += causes(of: topic, own)
            named.formUnion(own.map(\.check))
        }
        return Array(found.prefix(Self.most))
    }

    private func causes(of topic: ProblemTopic, _ own: [CheckReport.Finding]) -> [Cause] {
        var places: [String] = []
        for finding in own where !places.contains(finding.check) { places.append(finding.check) }
        // The worst of each place: the others follow from it, or are above.
        let worst = places.compactMap { place in
            own.filter { $0.check == place }.max { $0.grade.rank < $1.grade.rank }
        }
        if let reason = Self.common[topic], isCommon(worst) {
            return [Cause(topic, "\(reason.text) (\(places.joined(separator: ", ")))", remedy: reason.remedy)]
        }
        return worst.enumerated().sorted { left, right in
            (-left.element.grade.rank, left.offset) < (-right.element.grade.rank, right.offset)
        }.map { Cause(topic, "\($0.element.check): \($0.element.text)", remedy: $0.element.remedy) }
    }

    /// Whether all destinations, on several servers, cannot be reached for the same reason. A slow answer, a
    /// certificate that ends soon, and a name that name servers do not know are each destination's own.
    private func isCommon(_ worst: [CheckReport.Finding]) -> Bool {
        Set(hosts.values).count > 1 && worst.allSatisfy { $0.grade == .unavailable }
            && Set(hosts.keys).isSubset(of: worst.map(\.check))
    }

    /// The cause that all destinations share when they fail in the same way: this machine.
    private static let common: [ProblemTopic: (text: String, remedy: String)] = [
        .names: (
            "this machine's name server does not answer: no destination's name is found",
            "check /etc/resolv.conf and the network; 'getent hosts NAME' must print an address"
        ),
        .network: (
            "this machine's network is down or closed: no destination can be reached",
            "check the cable, the gateway and the firewall; set 'proxy:' where the network needs one"
        ),
        .certificate: (
            "no destination's certificate is trusted: something between reads TLS, or the clock is wrong",
            "check the clock; set 'ca_file' to the authority of a proxy that opens TLS"
        ),
        .proxy: (
            "the proxy lets no destination through", "check 'proxy:' and its login, or write 'proxy: off' without one"
        ),
    ]

    /// The topic of a finding that names none: by its place in the list.
    private static func topic(of finding: CheckReport.Finding) -> ProblemTopic {
        if let topic = finding.topic { return topic }
        guard finding.grade.rank > CheckReport.Grade.warning.rank else { return .advice }
        return switch finding.group {
        case .configuration: .configuration
        case .folders: finding.check == "state_dir" ? .state : .access
        case .watch: .access
        case .destinations, .network: .service
        case .limits: .limits
        case .clock: .clock
        case .errors: .files
        // An agent would not start with it, or would not do what its configuration says.
        case .program, .system: .configuration
        }
    }
}
