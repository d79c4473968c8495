import CCurl

/// Handles of one loop that have no request, kept because making one costs more than a small request's own work.
///
/// What libcurl keeps in a handle across a reset is of no request: name look-ups, TLS sessions, a connection's number.
struct CurlHandles {
    private var free: [CurlEasy] = []
    private let most: Int

    /// - Parameter most: as many as run at once; more would only be memory.
    init(most: Int) { self.most = most }

    var count: Int { free.count }

    /// nil when memory is out.
    mutating func take(for submission: Submission) -> CurlEasy? {
        Self.isUsual(submission) ? free.popLast() ?? CurlEasy() : CurlEasy()
    }

    /// Keeps the handle of a request that ended well, empty; others go with what they may still hold.
    mutating func giveBack(_ easy: CurlEasy, of submission: Submission, isWell: Bool) {
        guard isWell, free.count < most, Self.isUsual(submission) else { return }
        easy.reset()
        if easy.setUp == CURLE_OK { free.append(easy) }
    }

    /// A certificate is only shown by a handle that knows no session, and a download's buffer is larger than a kept handle
    /// should be.
    private static func isUsual(_ submission: Submission) -> Bool {
        !submission.request.readsCertificate && submission.sink == nil
    }
}
