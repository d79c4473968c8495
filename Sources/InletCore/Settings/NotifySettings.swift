package import SystemPackage

/// Events for notifications.
package enum NotificationEvent: String, Sendable, CaseIterable {
    case delivered
    /// A file failed for good, expired, or was missing when its turn came.
    case failed
    case rejected
    case batchDone = "batch_done"
    case destinationDown = "destination_down"
    case destinationUp = "destination_up"
    /// Every destination has proved all files of a removable volume, which can now be removed.
    case volumeDone = "volume_done"
    /// A removable volume needs a person: some of its files cannot be copied or proved.
    case volumeProblem = "volume_problem"
    /// A watched folder is paused: it is not mounted, or another one is in its place.
    case rootPaused = "root_paused"
    /// No file came from a watched folder for longer than it says.
    case rootQuiet = "root_quiet"
    case rootRecovered = "root_recovered"
    /// Nothing was heard of another agent of the fleet for minutes.
    case agentSilent = "agent_silent"

    /// The events of a receiver without `on:`: all but single deliveries.
    package static let usual: [NotificationEvent] = [
        .failed, .rejected, .batchDone, .destinationDown, .destinationUp, .volumeDone, .volumeProblem, .rootPaused,
        .rootQuiet, .rootRecovered, .agentSilent,
    ]

    /// Whether it is about a removable volume.
    package var isOfVolume: Bool { self == .volumeDone || self == .volumeProblem }
    /// Whether it may turn out as no longer true before it is sent.
    package var mayBeWithdrawn: Bool { isOfVolume || self == .rootQuiet }
}

/// An entry of `notify:`: a receiver and its events.
package struct NotifySettings: Sendable, Equatable {
    package enum Receiver: Sendable, Equatable {
        /// A URL for POST requests. Many are as good as a password: anyone with the URL can send to it.
        case webhook(Secret)
        /// A program and its arguments, run without a shell.
        case exec([String])
        case service(MessageService)

        /// The key that names it.
        package var kind: String {
            switch self {
            case .webhook: NotifyKeys.all.webhook.spec.name
            case .exec: NotifyKeys.all.exec.spec.name
            case .service(let service): service.kind
            }
        }
    }

    /// Unique; by default the kind of the receiver.
    package var name: String
    package var receiver: Receiver
    /// Signs webhook requests.
    package var secret: Secret?
    package var events: Set<NotificationEvent>
    /// Only files and batches of these routes; empty for all.
    package var routes: [String] = []
    package var timeout: Duration
    /// Whether plain HTTP may leave this machine.
    package var allowsHTTP = NotifyKeys.all.allowHTTP.standard
    /// CA certificates (PEM) to trust for the webhook, in addition to the system's.
    package var caFile: FilePath?
    /// The positions of its keys, for later errors.
    package var positions: [String: SourcePosition] = [:]
    package var position = SourcePosition(line: 1, column: 1)

    package init(
        name: String, receiver: Receiver, secret: Secret? = nil,
        events: Set<NotificationEvent> = Set(NotificationEvent.usual),
        timeout: Duration = NotifyKeys.all.timeout.standard
    ) {
        self.name = name
        self.receiver = receiver
        self.secret = secret
        self.events = events
        self.timeout = timeout
    }
}

/// A service that shows messages to people, on a phone for example.
package enum MessageService: Sendable, Equatable {
    /// The topic's URL is also what phones subscribe to: whoever knows it can read and write.
    case ntfy(topic: Secret, token: Secret?)
    /// - Parameter token: of an application.
    case gotify(server: String, token: Secret)
    /// - Parameters:
    ///   - user: the key of a user or group.
    ///   - token: of an application.
    case pushover(user: Secret, token: Secret, server: String)
    /// The URL of an Apprise API that has the addresses of services.
    case apprise(Secret)
    /// The URL of a channel's webhook.
    case discord(Secret)
    /// - Parameter token: of a bot.
    case telegram(chat: String, token: Secret, server: String)
    case smtp(MailAccount)

    package var kind: String {
        let keys = NotifyKeys.all
        return switch self {
        case .ntfy: keys.ntfy.spec.name
        case .gotify: keys.gotify.spec.name
        case .pushover: keys.pushover.spec.name
        case .apprise: keys.apprise.spec.name
        case .discord: keys.discord.spec.name
        case .telegram: keys.telegram.spec.name
        case .smtp: keys.smtp.spec.name
        }
    }

    /// The address that a phone subscribes to; nil for services without one. As good as a password.
    package var subscription: Secret? { if case .ntfy(let topic, _) = self { topic } else { nil } }
}

/// A mail server, and the addresses of its mails.
package struct MailAccount: Sendable, Equatable {
    /// `smtps://` with TLS, `smtp://` with STARTTLS.
    package var server: String
    package var user: String?
    package var password: Secret?
    package var from: String
    package var to: [String]

    package init(server: String, user: String? = nil, password: Secret? = nil, from: String, to: [String]) {
        (self.server, self.user, self.password, self.from, self.to) = (server, user, password, from, to)
    }
}

/// `ping_url:` — a dead man's switch: a URL that is requested regularly while the agent is healthy.
package struct PingSettings: Sendable, Equatable {
    /// A credential: anyone with the URL can ping in this agent's name.
    package var url: Secret
    package var interval: Duration
    /// Whether plain HTTP may leave this machine.
    package var allowsHTTP: Bool
    /// CA certificates (PEM) to trust for the server, in addition to the system's.
    package var caFile: FilePath?
    package var position: SourcePosition

    package init(
        url: Secret, interval: Duration, allowsHTTP: Bool = ConfigKeys.all.pingAllowHTTP.standard,
        caFile: FilePath? = nil,
        position: SourcePosition = SourcePosition(line: 1, column: 1)
    ) {
        self.url = url
        self.interval = interval
        self.allowsHTTP = allowsHTTP
        self.caFile = caFile
        self.position = position
    }
}
