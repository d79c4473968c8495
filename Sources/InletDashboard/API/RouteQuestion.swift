internal import InletAgent
internal import InletCore
internal import SystemPackage

/// What `POST route` asks: where a file would go, whether it is there or not.
struct RouteQuestion: Codable, Sendable, Described {
    var path: String
    var root: String?
    var size: Int64?

    static let notes: [String: SchemaNote] = [
        "path": "The whole path, or one below root.",
        "root": "One of the watched folders; the first of them without it.",
        "size": .schema(.from(0, to: nil), "Another size than the file has."),
    ]
}

/// Where it would go, and why.
struct RouteAnswer: Codable, Sendable, Described {
    struct Delivery: Codable, Sendable, Described {
        var destination: String
        var key: String
        /// The destination that must have the file first.
        var after: String?

        static var schemaName: String { "RouteDelivery" }
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
