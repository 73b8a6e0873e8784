package main

func Example() {
	main()
	// Output:
	// torn readings: 0 last: 10000 [10000 20000 30000 40000 50000 60000]
}
