internal import InletAgent
internal import InletCore
internal import SystemPackage

/// What `POST route` asks: where a file would go, whether it is there or not.
struct RouteQuestion: Codable, Sendable {
    /// The whole path, or one below `root`.
    var path: String
    /// One of the watched folders; the first of them without it.
    var root: String?
    /// Another size than the file has.
    var size: Int64?
}

/// Where it would go, and why.
struct RouteAnswer: Codable, Sendable {
    struct Delivery: Codable, Sendable {
        var destination: String
        var key: String
        /// The destination that must have the file first.
        var after: String?
    }

    var matched: Bool
    var route: String?
    var root: String?
    /// What was looked at, a sentence for each step.
    var why: [String]
    var category: String?
    var media_type: String?
    var deliveries: [Delivery]
    /// What was taken for granted because nothing of the file was read.
    var assumed: [String]

    init(_ trial: RouteTrial) {
        root = trial.place.root?.display
        why = trial.why
        assumed = trial.assumed
        (matched, deliveries) = (false, [])
        switch trial.outcome {
        case .plan(let plan, let steps):
            (route, category, media_type) = (plan.route, plan.category, plan.mediaType)
            matched = true
            deliveries = steps.steps.map {
                Delivery(destination: $0.destination, key: DisplayText.escape(plan.key), after: $0.after)
            }
        case .rejected(let name, _): route = name
        case .unmatched: break
        }
    }
}

extension RouteQuestion: Described {
    static var schemaName: String { "RouteQuestion" }
    static var schema: Schema {
        .object([
            .must("path", .text, "The whole path, or one below root."),
            .may("root", .text, "One of the watched folders; the first of them without it."),
            .may("size", .from(0, to: nil), "Another size than the file has."),
        ])
    }
}

extension RouteAnswer: Described {
    static var schemaName: String { "RouteAnswer" }
    static var schema: Schema {
        .object([
            .must("matched", .flag), .may("route", .text), .may("root", .text), .must("why", .list(.text)),
            .may("category", .text), .may("media_type", .text), .must("deliveries", .list(.named(Delivery.self))),
            .must("assumed", .list(.text)),
        ])
    }
}

extension RouteAnswer.Delivery: Described {
    static var schemaName: String { "RouteDelivery" }
    static var schema: Schema {
        .object([.must("destination", .text), .must("key", .text), .may("after", .text)])
    }
}

extension LocalControl {
    /// The watched folder that is meant, by its name or by what is shown of it: a name that is no text is shown escaped.
    func watched(_ root: FilePath) -> FilePath {
        let known = agent.live?.watched ?? []
        if known.contains(root) { return root }
        return known.first { $0.display == root.string } ?? root
    }

    /// PATH_MAX and NAME_MAX of Linux.
    private static let (longestPath, longestName) = (4096, 255)

    /// - Throws: `APIFault` where the question cannot be answered.
    func route(_ question: RouteQuestion) async throws -> RouteAnswer {
        guard let live = agent.live else { throw APIFault.conflict("no agent is running; ask with 'inlet route'") }
        guard !question.path.isEmpty, !question.path.utf8.contains(0) else {
            throw APIFault.badRequest("'path' names no file")
        }
        // No file can be called so, and each rule would look at all of it.
        guard question.path.utf8.count <= Self.longestPath,
            question.path.utf8.split(separator: 0x2F).allSatisfy({ $0.count <= Self.longestName })
        else { throw APIFault.badRequest("'path' is longer than a path can be") }
        if let size = question.size, size < 0 { throw APIFault.badRequest("'size' is less than nothing") }
        var path = FilePath(question.path)
        if path.isRelative {
            guard let root = question.root.map({ watched(FilePath($0)) }) ?? live.watched.first, root.isAbsolute
            else {
                throw APIFault.badRequest("'path' is the whole path of a file, or one below 'root'")
            }
            path = root.pushing(path)
        }
        return RouteAnswer(await live.route(path.lexicallyNormalized(), question.size))
    }
}
