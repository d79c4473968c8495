internal import InletCore
internal import InletLinux

/// Holds a source against what was admitted.
enum SourceGuard {
    /// - Throws: `.sourceGone` when the path names no file, `.sourceChanged` when it names another one or the content may
    ///   differ, and an outage of this machine's when that cannot be known now.
    static func check(_ source: SourceFile, _ order: DeliveryOrder) throws(DeliveryError) {
        let (naming, now) = try DeliveryError.onReading((source.naming(), source.identity()))
        switch naming {
        case .it: break
        case .another:
            throw DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): replaced before it was delivered; the new one is taken when it is quiet")
        case .nothing:
            throw DeliveryError(.sourceGone, .sourceGone, "\(source.path.display): removed before it was delivered")
        }
        guard now.isUntouched(since: order.source) || source.isRenumbered(now, since: order.source) else {
            let change = now.size == order.source.size ? "was modified" : "grew or shrank"
            throw DeliveryError(
                .sourceChanged, .sourceChanged,
                "\(source.path.display): \(change) since it was admitted; its new content is taken when it is quiet")
        }
    }
}
