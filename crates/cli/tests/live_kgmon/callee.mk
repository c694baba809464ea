obj-m := callee.o
