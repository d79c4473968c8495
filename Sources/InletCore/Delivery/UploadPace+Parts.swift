extension UploadPace {
    /// The size of the next file's parts: what one connection sends in two seconds, so that a kill costs no more than that
    /// of each, and slow lines are not cut into crumbs of less than `smallest`. A file keeps four parts for each connection:
    /// with fewer its end would leave most of them idle.
    ///
    /// - Parameters:
    ///   - smallest: also what a destination gets of which nothing is known yet.
    ///   - parallel: parts of one file at once.
    package func partSize(fileSize: Int64, smallest: Int64, largest: Int64, parallel: Int) -> Int64 {
        let wanted = Int64(min((rate ?? 0) * 2, Double(largest)))
        let most = min(wanted, fileSize / Int64(4 * max(1, parallel)), largest)
        var size = smallest
        while size * 2 <= most { size *= 2 }
        return size
    }
}
