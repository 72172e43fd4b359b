"""What simt/analyze makes of a program's raw results: source lines, sums, remarks, and the forms of the report."""
