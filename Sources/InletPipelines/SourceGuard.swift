internal import InletCore
internal import InletLinux

/// Holds a source against what was admitted.
enum SourceGuard {
    /// - Throws: `.sourceGone` when the path names nothing or another file, `.sourceChanged` when the content may differ.
    static func check(_ source: SourceFile, _ order: DeliveryOrder) throws(DeliveryError) {
        guard source.pathStillNamesIt() else {
            throw DeliveryError(
                .sourceGone, .sourceGone, "\(source.path.display): removed or replaced before it was delivered")
        }
        let now: FileIdentity
        do {
            now = try source.identity()
        } catch {
            throw DeliveryError(reading: error)
        }
        guard now.isUntouched(since: order.source) else {
            let change = now.size == order.source.size ? "was modified" : "grew or shrank"
            throw DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): \(change) since it was admitted; its new content is taken when it is quiet")
        }
    }
}
