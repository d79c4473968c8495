import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What `inlet cards list --json` says of a card.
struct CardView: Decodable, CustomStringConvertible {
    struct Line: Decodable {
        var mark: String
        var text: String
    }

    var name: String
    var uuid: String?
    var verdict: String
    var headline: String
    var safe: Bool
    var needs_somebody: Bool
    var stage: String
    var files: Int
    var accounted: Int
    var open: Int
    var roll: String?
    var ask: Bool
    var read_errors: Int
    var lines: [Line]

    var description: String {
        "\(name): \(headline)\n" + lines.map { "\($0.mark): \($0.text)" }.joined(separator: "\n")
    }

    func says(_ text: String) -> Bool { lines.contains { $0.text.contains(text) } }
}

extension Place {
    /// A machine with the readers `one` and `two`, which sends whatever is in a card's DCIM to all destinations.
    ///
    /// - Parameters:
    ///   - destinations: by name; the usual ones are folders of that name.
    ///   - watch: more keys of the watched folder, like `route` those of the only route.
    static func readers(
        _ destinations: KeyValuePairs<String, String> = ["library": "type: folder, path: library"],
        key: String = "{volume}/{dir}/{name}", watch: [String] = [], route: [String] = [], top: [String] = []
    ) throws -> Place {
        let place = try Place()
        for name in ["media/one", "media/two"] + destinations.map(\.key) where !place.exists(place.path(name)) {
            try place.folder.makeDirectory(FilePath(name))
        }
        let all = destinations.map { "  \($0.key): { \($0.value) }" }.joined(separator: "\n")
        try place.configure(
            text: """
                state_dir: state
                log: { level: debug }
                \(top.joined(separator: "\n"))
                destinations:
                \(all)
                watch:
                  - path: "\(place.path("media"))/*/DCIM"
                    \((["settle: 0s", "settle_empty: 0s"] + watch).joined(separator: "\n    "))
                routes:
                  - name: all
                    to: [\(destinations.map(\.key).joined(separator: ", "))]
                    key: "\(key)"
                    retry: { attempts: 3, backoff: 100ms }
                    \(route.joined(separator: "\n    "))

                """)
        return place
    }

    func path(_ name: String) -> FilePath { folder.path.pushing(FilePath(name)) }

    func reader(_ name: String) -> FilePath { path("media/\(name)") }

    /// The cards in the readers.
    func cards() async throws -> [CardView] {
        struct Answer: Decodable {
            var cards: [CardView]
        }
        let answer = try await inlet("cards", "list", "--json", code: 0)
        return try JSONDecoder().decode(Answer.self, from: Data(answer.output.utf8)).cards
    }

    func card(_ name: String = "EOS") async throws -> CardView {
        try #require(try await cards().first { $0.name == name }, "\(name) is in a reader")
    }

    /// The files of a folder, without those of its own machinery.
    func names(in folder: String) -> [String] {
        Self.files(below: path(folder)).keys.filter { !$0.hasPrefix(".inlet") }.sorted()
    }

    /// Puts a file on a card that is in a reader.
    func put(_ content: Data, on reader: String, _ name: String) throws {
        let file = self.reader(reader).pushing(FilePath(name))
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        try content.write(to: URL(fileURLWithPath: file.string))
    }

    /// Waits until a card has this verdict. - Returns: the card.
    @discardableResult
    func wait(
        _ verdict: String, of name: String = "EOS", by agent: InletProcess, within bound: Duration = .seconds(120),
        where condition: (CardView) -> Bool = { _ in true }
    ) async throws -> CardView {
        var found: CardView?
        try await agent.wait("\(name) is \(verdict)", within: bound) {
            found = try await cards().first { $0.name == name }
            return found.map { $0.verdict == verdict && condition($0) } ?? false
        }
        return try #require(found)
    }
}

extension InletProcess {
    /// The headlines that were told of a card, in order.
    func headlines(of card: String = "EOS") -> [String] {
        log.filter { ["volume.done", "volume.unverified"].contains($0.event) && $0["volume"] == card }
            .compactMap { $0["verdict"] }
    }

    /// Waits until so many headlines of a card begin with this one.
    func told(
        _ headline: String, of card: String = "EOS", number: Int = 1, within bound: Duration = .seconds(120)
    ) async throws {
        try await wait("'\(headline)' is told of \(card) for the \(number). time", within: bound) {
            headlines(of: card).count { $0.hasPrefix(headline) } >= number
        }
    }

    static let safe = "SAFE TO REMOVE"
    /// How soon a card is called safe once it is.
    static let promise = Duration.seconds(5)
}

extension DiskImage {
    /// A card of a camera.
    static func card(_ files: KeyValuePairs<String, Data>, label: String = "EOS", format: Format = .ext4) throws
        -> DiskImage
    {
        let card = try DiskImage(label: label, megabytes: 24, format: format)
        for file in files { try card.write(file.value, to: FilePath(file.key)) }
        return card
    }
}

/// Runs `body` beside an S3 sandbox.
///
/// - Parameter body: also gets the settings of a destination there.
func withStore(_ body: @Sendable @escaping (S3Sandbox, _ settings: String) async throws -> Void) async throws {
    let folder = try TemporaryDirectory()
    let account = S3Sandbox.Account(
        accessKey: "AKIDEXAMPLE", secretKey: Secret("sandbox-secret-93f1"), region: "us-east-1")
    let sandbox = try S3Sandbox(directory: folder.path, account: account)
    try await whileServing({ try await sandbox.run() }) {
        try await body(
            sandbox,
            "type: s3, endpoint: \"http://127.0.0.1:\(try await sandbox.port())\", region: us-east-1, "
                + "bucket: sandbox, access_key: AKIDEXAMPLE, secret_key: sandbox-secret-93f1, verify: md5")
    }
    withExtendedLifetime(folder) {}
}
