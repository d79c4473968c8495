internal import InletAgent
internal import InletCore
internal import InletJournal
internal import SystemPackage

/// What changes something.
extension Endpoints {
    static let actions: [Endpoint] =
        JobAction.allCases.map { action in
            .post("jobs/{id}/\(action.rawValue)", "\(words(action)) one file.") { call, context in
                try await context.control.acting(for: call.visitor.name).act(action, on: call.number("id"))
            }
        }
        + JobAction.allCases.map { action in
            .post(
                "queue/\(action.rawValue)", "\(words(action)) the files of a selection.", JobSelection.self,
                query: [.init(name: "dry_run", schema: .wordOfFlag, note: "Only says what would be done.")],
                limit: Endpoint.largeBody
            ) { call, context, selection in
                try await context.control.act(action, on: selection, dryRun: call.flag("dry_run"))
            }
        } + [
            .post("queue/clear", "Cancels everything that has not ended.") { _, context in
                try await context.control.clear()
            },
            .postForList(
                "queue/list", "The files of a selection, newest first.", JobSelection.self, need: .read,
                limit: Endpoint.largeBody
            ) { _, context, selection in try await context.control.jobs(selection) }
            // What is wrong with it, the endpoint says.
            .seated { ((try? $0.decoded(JobSelection.self))?.limit ?? 0) > Endpoint.smallList },
        ]

    static let limits: [Endpoint] =
        [("pause", true), ("resume", false)].map { path, isPaused in
            .post(
                path, isPaused ? "Sends nothing to a destination, until resume." : "Sends to it again.",
                query: [.init(name: "destination", schema: .text, note: "Without it, all of them.")]
            ) { call, context in
                try await context.control.acting(for: call.visitor.name)
                    .setPaused(isPaused, destination: call.value("destination"))
            }
        } + [
            .getList("limits", "How fast may be sent, all together first.") { _, context in
                try await context.control.limits()
            },
            .post("limits", "Sets that, until auto or the next start.", LimitWish.self) { _, context, wish in
                try await context.control.limit(wish)
            },
            .post("roots/resume", "Takes a watched folder as it is now.", RootOrder.self) { call, context, order in
                try await context.control.acting(for: call.visitor.name).resume(root: order.root())
            },
        ]

    private static func words(_ action: JobAction) -> String {
        switch action {
        case .retry: "Queues again or hurries"
        case .cancel: "Cancels"
        case .forget: "Removes from the journal"
        }
    }
}

/// What `resume` posts; the path as bytes, because names need not be text, or as text.
struct RootOrder: Codable, Sendable {
    var path: [UInt8]?
    var text: String?

    func root() throws(APIFault) -> FilePath {
        if let path, !path.isEmpty, !path.contains(0) { return FilePath(bytes: path) }
        guard let text, !text.isEmpty, !text.utf8.contains(0) else {
            throw .badRequest("'path' or 'text' names a folder")
        }
        return FilePath(text)
    }
}
